// The names that zones commonly have, to query if a zone can't be transferred.

/** Queried at the domain itself. */
export const apexTypes = ['A', 'AAAA', 'MX', 'TXT', 'CAA', 'HTTPS'] as const

/** Hosts, queried for A and AAAA, which also finds CNAMEs. */
export const hosts = (
  'www mail mail1 mail2 webmail smtp smtp1 imap pop pop3 mx mx1 mx2 mx3 email exchange owa autodiscover autoconfig ' +
  'lyncdiscover sip msoid enterpriseregistration enterpriseenrollment mta-sts ftp sftp ssh vpn remote gateway cpanel whm ' +
  'webdisk plesk ns1 ns2 ns3 ns4 api app apps dev staging stage test beta demo blog shop store cdn static assets img ' +
  'images media files download docs help support status m mobile admin portal dashboard intranet git gitlab jenkins jira ' +
  'wiki forum news calendar drive cloud login auth sso id my secure pay crm erp go links click track email-link ' +
  'www2 server host db monitor grafana chat meet video'
).split(' ')

/** Queried for TXT, following CNAMEs. */
export const texts = [
  '_dmarc',
  '_mta-sts',
  '_smtp._tls',
  'default._bimi',
  '_domainkey',
  '_adsp._domainkey',
  '_amazonses',
  '_atproto',
  'mail',
]

/** DKIM selectors of common email providers: `<selector>._domainkey`. */
export const selectors = (
  'default dkim dkim1 dkim2 mail mail2 email key1 key2 k1 k2 k3 s1 s2 s1024 s2048 sel1 sel2 selector selector1 selector2 ' +
  'google 20230601 20210112 fm1 fm2 fm3 fm4 protonmail protonmail2 protonmail3 mxvault zoho zmail sig1 pm 20200303 ' +
  'mandrill mailjet mg mailo mte1 smtp smtpapi sendgrid m1 everlytickey1 everlytickey2 cm ctct1 ctct2 hs1 hs2 brevo1 ' +
  'brevo2 krs resend scph0920 postmark yandex'
).split(' ')

/** Services, queried for SRV. */
export const services = (
  '_autodiscover._tcp _submission._tcp _submissions._tcp _imap._tcp _imaps._tcp _pop3._tcp _pop3s._tcp _caldav._tcp ' +
  '_caldavs._tcp _carddav._tcp _carddavs._tcp _sip._tcp _sip._udp _sip._tls _sips._tcp _sipfederationtls._tcp ' +
  '_xmpp-client._tcp _xmpp-server._tcp _jabber._tcp _matrix._tcp _matrix-fed._tcp _ldap._tcp _kerberos._udp _kerberos._tcp ' +
  '_minecraft._tcp _ts3._udp _stun._udp _turn._udp'
).split(' ')

/** Types queried to detect a wildcard. */
export const wildcardTypes = ['A', 'AAAA', 'MX', 'TXT'] as const
