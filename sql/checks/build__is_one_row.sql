-- A catalog is one build.
SELECT count(*) AS builds
FROM build
HAVING count(*) <> 1;
