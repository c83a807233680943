// Labels that visitors, browsers and mail programs take for the platform's own; a project of such a name gets a suffix.

/** Where people type a password or a card number. */
const trusted = [
  ...['account', 'accounts', 'myaccount', 'my-account', 'auth', 'auth0', 'authenticate', 'authentication', 'authorize'],
  ...['authorization', 'login', 'logon', 'logout', 'signin', 'sign-in', 'signout', 'sign-out', 'signup', 'sign-up'],
  ...['register', 'registration', 'sso', 'saml', 'oauth', 'oauth2', 'oidc', 'openid', 'id', 'identity', 'idp', 'iam'],
  ...['ldap', 'kerberos', 'mfa', '2fa', 'otp', 'passkey', 'password', 'passwords', 'reset-password', 'recovery'],
  ...['verify', 'verification', 'confirm', 'session', 'sessions', 'secure', 'security', 'secret', 'secrets', 'vault'],
  ...['keys', 'token', 'tokens', 'user', 'users', 'profile', 'customer', 'customers', 'billing', 'pay', 'payment'],
  ...['payments', 'checkout', 'invoice', 'invoices', 'subscription', 'subscriptions', 'refund', 'refunds', 'trust'],
]

const administration = [
  ...['admin', 'admins', 'administrator', 'administration', 'sysadmin', 'superuser', 'root', 'operator', 'operators'],
  ...['ops', 'staff', 'internal', 'intranet', 'private', 'backend', 'backoffice', 'manage', 'manager', 'management'],
  ...['control', 'cpanel', 'panel', 'console', 'dashboard', 'settings', 'config', 'configuration', 'setup', 'install'],
  ...['moderator', 'system', 'platform', 'monitor', 'monitoring', 'metrics', 'prometheus'],
  ...['grafana', 'logs', 'logging', 'audit', 'health', 'healthz', 'readyz', 'status', 'uptime', 'incident'],
  ...['incidents', 'maintenance', 'backup', 'backups'],
]

/** What only the platform says about itself; abuse, hostmaster and the like are those of RFC 2142. */
const voice = [
  ...['abuse', 'hostmaster', 'postmaster', 'webmaster', 'noc', 'noreply', 'no-reply', 'mailer-daemon', 'info'],
  ...['support', 'help', 'helpdesk', 'helpcenter', 'service', 'services', 'servicedesk', 'ticket', 'tickets'],
  ...['contact', 'feedback', 'sales', 'press', 'legal', 'terms', 'tos', 'privacy', 'policy', 'policies', 'compliance'],
  ...['gdpr', 'dmca', 'copyright', 'csirt', 'psirt', 'takedown', 'takedowns', 'report', 'official', 'docs', 'doc'],
  ...['documentation', 'kb', 'reference', 'changelog', 'pricing'],
]

const machinery = [
  ...['www', 'www1', 'www2', 'www3', 'ww', 'wwww', 'app', 'apps', 'api', 'apis', 'api1', 'api2', 'rest', 'graphql'],
  ...['rpc', 'grpc', 'ws', 'wss', 'webhook', 'webhooks', 'hook', 'hooks', 'callback', 'cdn', 'cdn1', 'cdn2', 'static'],
  ...['assets', 'upload', 'uploads', 'storage', 's3', 'database', 'db', 'postgres', 'redis'],
  ...['gateway', 'proxy', 'edge', 'lb', 'origin', 'git', 'registry', 'ci', 'deploy', 'deployments', 'production'],
  ...['staging', 'developer', 'developers', 'acme', 'acme-challenge', 'localhost', 'localdomain', 'broadcasthost'],
]

/** Asked for by programs without a person: proxies (WPAD), mail clients and servers (RFC 8461), time, directories. */
const discovered = [
  ...['wpad', 'isatap', 'autoconfig', 'autodiscover', 'mta-sts', 'dmarc', 'dkim', 'spf', 'bimi', 'openpgpkey', 'pki'],
  ...['ca', 'crl', 'ocsp', 'mail', 'mail1', 'mail2', 'mail3', 'email', 'e-mail', 'webmail', 'imap', 'imaps', 'pop'],
  ...['pop3', 'pop3s', 'smtp', 'smtp1', 'smtp2', 'smtps', 'submission', 'mx', 'mx1', 'mx2', 'mx3', 'relay', 'bounce'],
  ...['bounces', 'lists', 'exchange', 'owa', 'outlook', 'caldav', 'carddav', 'webdav', 'ftp', 'ftps', 'sftp', 'ssh'],
  ...['telnet', 'vpn', 'remote', 'rdp', 'ntp', 'sip', 'voip', 'xmpp', 'ns', 'ns0', 'ns1', 'ns2', 'ns3', 'ns4', 'ns5'],
  ...['ns6', 'ns7', 'ns8', 'ns9', 'dns', 'dns1', 'dns2', 'dns3', 'resolver', 'nameserver', 'nameservers', 'whois'],
  ...['rdap', 'dhcp', 'radius', 'snmp', 'syslog', 'stun', 'turn'],
]

export const wellKnownLabels: ReadonlySet<string> = new Set([
  ...trusted,
  ...administration,
  ...voice,
  ...machinery,
  ...discovered,
])
