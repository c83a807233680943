// Commands for domains and DNS.
import { projectOption, type Tree } from '../kit/tree.ts'

export function declareDomains({ top, add, on }: Tree): void {
  const domains = top('domains', 'domains of projects')
  on(
    add(domains, 'ls', 'list domains').addOption(projectOption()),
    async () => (await import('../commands/domains.ts')).list,
  )
  on(
    add(domains, 'add <name>', 'attach a domain and show what to set at the registrar')
      .addOption(projectOption())
      .option('-w, --wait', 'wait until it is verified and has its certificate'),
    async () => (await import('../commands/domains.ts')).add,
  )
  on(
    add(domains, 'verify <name>', 'check the ownership of a domain now').option(
      '-w, --wait',
      'wait until it is verified and has its certificate',
    ),
    async () => (await import('../commands/domains.ts')).verify,
  )
  on(
    add(domains, 'rm <name>', 'detach a domain and delete its zone'),
    async () => (await import('../commands/domains.ts')).remove,
  )

  const dns = top('dns', 'DNS records of domains')
  on(
    add(dns, 'ls <domain>', 'list records')
      .option('--type <type>', 'only of this type')
      .option('--name <name>', 'only with this name'),
    async () => (await import('../commands/dns.ts')).list,
  )
  on(
    add(dns, 'set <domain> <name> <type> <values...>', 'set all records of a name and type').option(
      '--ttl <seconds>',
      'TTL in seconds',
    ),
    async () => (await import('../commands/dns.ts')).set,
  )
  on(
    add(dns, 'rm <domain> <name> [type]', 'delete the records of a name and type, or one record by ID (rec_…)'),
    async () => (await import('../commands/dns.ts')).remove,
  )
  on(
    add(dns, 'import <domain> <file>', 'replace the records with those of a zone file (- is stdin)')
      .option('--dry-run', 'show what would change')
      .option('--skip-unsupported', 'skip lines of unsupported types'),
    async () => (await import('../commands/dns.ts')).importZone,
  )
  on(add(dns, 'export <domain>', 'print the zone file'), async () => (await import('../commands/dns.ts')).exportZone)
  on(
    add(dns, 'dnssec <domain> [state]', 'show how a zone is signed, or turn signing on or off'),
    async () => (await import('../commands/dns.ts')).dnssec,
  )
}
