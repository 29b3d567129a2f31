"""A witness inside PostgreSQL: triggers that write down what nobody with an old token may do.

Workers tell PostgreSQL their name as `application_name`, so it can tell who speaks.
"""

AUDIT = """
CREATE TABLE chaos_wrongs (id bigserial, at timestamptz DEFAULT clock_timestamp(), wrong text);

-- What became of executions, by whom: also for somebody who wants to know how it came to a wrong.
CREATE TABLE chaos_steps (
    id bigserial, at timestamptz DEFAULT clock_timestamp(), who text DEFAULT current_setting('application_name'),
    execution_id bigint, before text, after text, cause text, token bigint
);
CREATE INDEX ON chaos_steps (execution_id);

CREATE FUNCTION chaos_runner(execution bigint) RETURNS text LANGUAGE sql AS $$
    SELECT who FROM chaos_steps WHERE execution_id = execution AND after = 'RUNNING' ORDER BY id DESC LIMIT 1
$$;

CREATE FUNCTION chaos_watch_execution() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    present bigint;
    runner text := chaos_runner(NEW.id);
    who text := current_setting('application_name');
BEGIN
    IF OLD.status NOT IN ('PENDING', 'RUNNING') AND NEW IS DISTINCT FROM OLD THEN
        INSERT INTO chaos_wrongs (wrong)
            VALUES (format('execution %s had ended %s, and became %s', NEW.id, OLD.status, NEW.status));
    END IF;
    IF NEW.lease_token < OLD.lease_token THEN
        INSERT INTO chaos_wrongs (wrong) VALUES (format('execution %s went back to an older token', NEW.id));
    END IF;
    IF OLD.status = 'RUNNING' AND NEW.status IN ('SUCCESS', 'PARTIAL', 'FAILED', 'PENDING') AND who <> runner THEN
        INSERT INTO chaos_wrongs (wrong)
            VALUES (format('%s said that execution %s was %s, which %s ran', who, NEW.id, NEW.status, runner));
    END IF;
    IF NEW.status = 'RUNNING' AND OLD.status <> 'RUNNING' THEN
        SELECT token INTO present FROM leases WHERE key = 'device:' || NEW.device;
        IF present IS DISTINCT FROM NEW.lease_token THEN
            INSERT INTO chaos_wrongs (wrong) VALUES (format(
                'execution %s began with token %s, and the device is held with %s', NEW.id, NEW.lease_token, present));
        END IF;
    END IF;
    IF NEW.status <> OLD.status THEN
        INSERT INTO chaos_steps (execution_id, before, after, cause, token)
            VALUES (NEW.id, OLD.status, NEW.status, NEW.cause, NEW.lease_token);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER chaos_watch AFTER UPDATE ON snmp_executions FOR EACH ROW EXECUTE FUNCTION chaos_watch_execution();

-- A harvest as a whole: it may have nothing for the history.
CREATE FUNCTION chaos_watch_onus() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO chaos_wrongs (wrong)
        SELECT format(
            '%s wrote ONUs of OLT %s while execution %s ran, which is that of %s',
            current_setting('application_name'), harvest.olt_id, e.id, chaos_runner(e.id))
        FROM (SELECT DISTINCT olt_id FROM fresh) harvest
        LEFT JOIN snmp_executions e ON e.olt_id = harvest.olt_id AND e.status = 'RUNNING'
        WHERE e.id IS NULL OR chaos_runner(e.id) <> current_setting('application_name');
    RETURN NULL;
END $$;
CREATE TRIGGER chaos_watch_new AFTER INSERT ON onu_data REFERENCING NEW TABLE AS fresh
    FOR EACH STATEMENT EXECUTE FUNCTION chaos_watch_onus();
CREATE TRIGGER chaos_watch_old AFTER UPDATE ON onu_data REFERENCING NEW TABLE AS fresh
    FOR EACH STATEMENT EXECUTE FUNCTION chaos_watch_onus();

CREATE FUNCTION chaos_watch_history() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO chaos_wrongs (wrong)
        SELECT format(
            '%s wrote readings of OLT %s from %s while execution %s ran, which is that of %s',
            current_setting('application_name'), harvest.olt_id, harvest.at, e.id, chaos_runner(e.id))
        FROM fresh harvest
        LEFT JOIN snmp_executions e ON e.olt_id = harvest.olt_id AND e.status = 'RUNNING'
        LEFT JOIN (SELECT execution_id, max(started_at) AS started_at FROM execution_attempts GROUP BY 1) a
            ON a.execution_id = e.id
        WHERE e.id IS NULL OR harvest.at < a.started_at OR chaos_runner(e.id) <> current_setting('application_name');
    RETURN NULL;
END $$;
CREATE TRIGGER chaos_watch AFTER INSERT ON onu_history_runs REFERENCING NEW TABLE AS fresh
    FOR EACH STATEMENT EXECUTE FUNCTION chaos_watch_history();
"""
