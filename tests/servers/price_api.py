"""What the loopback price APIs share. Each `price_api_<module>.py` speaks the documented shape of one API, with

DOCS      its public documentation
HOSTS     the publisher's hosts, which lead here
ROUTES    path -> answer; two pages where the API pages. Cards are real, figures are made up
FIRST     a path to break
OFFERS    how many offers there are in it
EMPTY     paths -> valid answers with nothing in them
NEEDED    a field of its JSON without which no row has a price
ORIGIN    of its offers, where it is not "direct"
KEYS      environment variables to set; their values may appear nowhere
OPTIONAL_KEYS  the same, of an API that answers without them too
CONSTANTS of the module, made smaller for the test
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from servers.loopback import Answer, LoopbackServer, Request

Route = Answer | Callable[[Request], Answer]
CANARY = "canary-7f3a91"


def said(value: Any) -> Answer:
    """`value` as JSON."""
    return Answer(200, json.dumps(value).encode(), {"Content-Type": "application/json"})


def with_key(header: str, value: str, route: Route) -> Route:
    """`route` for those who bring the key; 401 for others."""

    def answer(request: Request) -> Answer:
        if request.headers.get(header.lower()) != value:
            return Answer(401, b'{"error": "unauthorized"}')
        return route(request) if callable(route) else route

    return answer


def changed(routes: Mapping[str, Route], change: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Route]:
    """The same routes with `change` made to every object of every JSON answer."""

    def walk(value: Any) -> Any:
        if isinstance(value, dict):
            return change({name: walk(inner) for name, inner in value.items()})
        return [walk(inner) for inner in value] if isinstance(value, list) else value

    def wrap(route: Route) -> Route:
        def answer(request: Request) -> Answer:
            given = route(request) if callable(route) else route
            try:
                return said(walk(json.loads(given.body))) if given.status == 200 else given
            except ValueError:  # no JSON
                return given

        return answer

    return {path: wrap(route) for path, route in routes.items()}


def mirrors(api: Any, server: LoopbackServer) -> tuple[tuple[str, str], ...]:
    """For Settings.mirrors: the publisher's hosts lead to `server`."""
    return tuple((host, server.url) for host in api.HOSTS)
