-- A search-and-rescue mission in the hills. Everything below runs at every device and on Spark.

CREATE TABLE sectors (sector BIGINT PRIMARY KEY, name TEXT NOT NULL, searched BOOLEAN NOT NULL);
CREATE TABLE paths (a BIGINT, b BIGINT, passable BOOLEAN NOT NULL, PRIMARY KEY (a, b));
CREATE TABLE units (unit TEXT PRIMARY KEY, sector BIGINT NOT NULL, ready BOOLEAN NOT NULL);

-- Only the drone named in a row writes it, and says itself when it is done with a stretch of time.
CREATE TABLE sightings (drone TEXT NOT NULL, at TIMESTAMP NOT NULL, sector BIGINT NOT NULL, what TEXT NOT NULL)
    WITH (owner = 'drone', event_time = 'at', sources = 'drone-1, drone-2, drone-3, drone-4');

-- Where one can get from the camp, sector 1, on paths that are passable.
CREATE MATERIALIZED VIEW reachable AS
    WITH RECURSIVE reached(sector) AS (
        SELECT sector FROM sectors WHERE sector = 1
        UNION
        SELECT paths.b FROM reached JOIN paths ON paths.a = reached.sector WHERE paths.passable
        UNION
        SELECT paths.a FROM reached JOIN paths ON paths.b = reached.sector WHERE paths.passable
    )
    SELECT sector FROM reached;

-- Sightings by sector and ten minutes; final when every drone has closed them.
CREATE MATERIALIZED VIEW seen AS
    SELECT tumble(at, INTERVAL '10 minutes') AS since, sector, count(*) AS sightings, window_final() AS final
    FROM sightings
    GROUP BY tumble(at, INTERVAL '10 minutes'), sector;

-- Where much was seen within ten minutes, and nobody has searched yet.
CREATE MATERIALIZED VIEW priority AS
    SELECT sectors.sector, sectors.name, max(seen.sightings) AS sightings
    FROM seen JOIN sectors ON sectors.sector = seen.sector
    WHERE NOT sectors.searched
    GROUP BY sectors.sector, sectors.name
    HAVING max(seen.sightings) >= 3;

-- Who should go where: units that are ready, to priority sectors that can be reached.
CREATE MATERIALIZED VIEW orders AS
    SELECT units.unit, priority.sector, priority.name, priority.sightings
    FROM priority
    JOIN reachable ON reachable.sector = priority.sector
    JOIN units ON units.ready AND units.sector <> priority.sector;

-- What each drone has done, counted in the cloud: who wants it needs none of the rows.
CREATE MATERIALIZED VIEW flown WITH (authority = 'hub') AS
    SELECT drone, count(*) AS sightings, count(DISTINCT sector) AS sectors FROM sightings GROUP BY drone;
