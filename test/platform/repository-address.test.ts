import { execFileSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { refusalIn } from '../../src/platform/git/git-remote.ts'
import {
  addressRefusal,
  originOf,
  overSsh,
  readAddress,
  repositoryName,
  repositoryPattern,
  urlOfAddress,
} from '../../src/platform/git/repository-address.ts'
import { hostKeysIn, isHostKey, knownHostKeys, newDeployKey } from '../../src/platform/git/ssh-keys.ts'
import { hasSshd } from '../helpers/sshd.ts'

const open = { production: true, webhookAllowPrivate: false }

describe('the address of a repository', () => {
  test.each([
    ['https://git.example.com/acme/site.git', 'https://git.example.com/acme/site.git', 'acme/site'],
    ['https://GIT.example.com:443/acme/site', 'https://git.example.com/acme/site', 'acme/site'],
    ['https://git.example.com:8443/a/b/c.git', 'https://git.example.com:8443/a/b/c.git', 'a/b/c'],
    ['git@github.com:acme/site.git', 'ssh://git@github.com/acme/site.git', 'acme/site'],
    ['ssh://git@git.example.com:2222/acme/site', 'ssh://git@git.example.com:2222/acme/site', 'acme/site'],
    ['ssh://git@git.example.com:22/acme/site', 'ssh://git@git.example.com/acme/site', 'acme/site'],
  ])('%s is %s', (repo, url, name) => {
    expect(repo).toMatch(new RegExp(repositoryPattern))
    expect(urlOfAddress(readAddress(repo)!)).toBe(url)
    expect(repositoryName(repo)).toBe(name)
    expect(addressRefusal(repo, open)).toBeNull()
  })

  test('of the form <owner>/<repository> is that of the installation', () => {
    expect(readAddress('acme/site')).toBeNull()
    expect(repositoryName('acme/site')).toBe('acme/site')
    expect(addressRefusal('acme/site', open)).toBeNull()
  })

  test.each([
    'https://me:secret@git.example.com/acme/site',
    'https://git.example.com/../etc/passwd',
    'https://git.example.com/acme/site?x=1',
    'https://git.example.com',
    'ssh://-oProxyCommand=x@git.example.com/acme/site',
    'ssh://git@-oProxyCommand/acme/site',
    'git@git.example.com:-upload-pack',
    'git@git.example.com:../site',
    'file:///etc',
    'ext::sh -c touch% /tmp/x',
    '/etc/passwd',
    'ssh://git@git.example.com/acme/si te',
    "git@git.example.com:acme/site';id;'",
  ])('%s is none', (repo) => {
    expect(repo).not.toMatch(new RegExp(repositoryPattern))
    expect(readAddress(repo)).toBeNull()
  })

  test.each([
    ['http://git.example.com/acme/site', 'https://'],
    ['https://127.0.0.1/acme/site', 'private'],
    ['https://0x7f.1/acme/site', 'private'],
    ['git@10.0.0.5:acme/site', 'private'],
    ['ssh://git@localhost/acme/site', 'private'],
    ['git@vm:acme/site', 'private'],
    ['https://git.home.arpa/acme/site', 'private'],
    ['ssh://git@2130706433/acme/site', 'private'],
    ['https://git.example.com:99999/acme/site', 'port'],
  ])('%s is refused in production', (repo, why) => {
    expect(addressRefusal(repo, open)).toContain(why)
  })

  test('over SSH is at the same host, at its usual port', () => {
    const address = overSsh(readAddress('https://git.example.com:8443/acme/site')!)
    expect([originOf(address), urlOfAddress(address)]).toEqual([
      'ssh://git.example.com',
      'ssh://git@git.example.com/acme/site',
    ])
  })
})

describe('what git says', () => {
  test.each([
    ["fatal: could not read Username for 'https://x': terminal prompts disabled", false, 'denied'],
    ['git@x: Permission denied (publickey).', true, 'denied'],
    ['ERROR: Repository not found.', true, 'denied'],
    ["fatal: repository 'https://x/' not found", false, null],
    ['Host key verification failed.', true, 'host_key_changed'],
    ['remote: Host key verification failed.\nfatal: the remote end hung up', true, null],
    ['fatal: unable to access: Could not resolve host', true, null],
  ])('%s', (said, hasAccess, refusal) => {
    expect(refusalIn(said, hasAccess)).toBe(refusal)
  })
})

describe('keys of SSH', () => {
  test('are told from texts that only look like them', () => {
    const { publicKey } = newDeployKey('berth-site')
    const key = publicKey.split(' ').slice(0, 2).join(' ')
    expect(isHostKey(key)).toBe(true)
    expect(isHostKey(key.replace('ssh-ed25519', 'ssh-rsa'))).toBe(false)
    expect(hostKeysIn(`host ${key}\n# comment\nhost ssh-ed25519 AAAA\n`)).toEqual([key])
    expect(knownHostKeys('ssh://github.com').every(isHostKey)).toBe(true)
    expect(knownHostKeys('ssh://github.com:2222')).toEqual([])
  })

  test.skipIf(!hasSshd())('are such as OpenSSH reads', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'berth-key-'))
    try {
      const { publicKey, privateKey } = newDeployKey('berth-site')
      await writeFile(join(directory, 'key'), privateKey, { mode: 0o600 })
      const read = execFileSync('ssh-keygen', ['-y', '-f', join(directory, 'key')], { encoding: 'utf8' })
      expect(read.trim()).toBe(publicKey)
    } finally {
      await rm(directory, { recursive: true })
    }
  })
})
