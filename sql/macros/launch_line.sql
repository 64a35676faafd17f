CREATE MACRO launch_line(
    template, model, repository, file, folder, gpus, context, users, kv, flags, utilization, version
) AS (
    replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        template,
        '{model}', model
    ),
        '{repository}', repository
    ),
        '{file}', file
    ),
        '{name}', folder
    ),
        '{gpus}', cast(gpus AS VARCHAR)
    ),
        '{all_context}', cast(cast(context AS BIGINT) * users AS VARCHAR)
    ),
        '{context}', cast(cast(context AS BIGINT) AS VARCHAR)
    ),
        '{users}', cast(users AS VARCHAR)
    ),
        '{kv}', coalesce(kv, '')
    ),
        '{flags}', flags
    ),
        '{utilization}', coalesce(utilization, '')
    ),
        '{version}', coalesce(version, '')
    )
);
COMMENT ON MACRO launch_line IS -- noqa: PRS
'A template of launch_template with its words filled in; null: no template; source: launch_template';
