-- What migrations or earlier versions of these files created and nothing uses anymore. Applied after all other files.
DROP TRIGGER IF EXISTS project_uncount ON project;
DROP TRIGGER IF EXISTS domain_uncount ON domain;
DROP TRIGGER IF EXISTS webhook_uncount ON webhook;
DROP TRIGGER IF EXISTS dns_key_uncount ON dns_key;
DROP TRIGGER IF EXISTS deployment_count_bytes ON deployment;
DROP TRIGGER IF EXISTS deployment_count_project ON deployment;
DROP FUNCTION IF EXISTS count_reopened_ticket, uncount_revoked_tokens, count_in_project, count_stored_bytes,
  forget_project_usage, count_build_time;
DROP FUNCTION IF EXISTS domain_certificate_notify, acme_challenge_notify, platform_zone_notify, notify_dns_key,
  notify_instance, notify_node, notify_session;
