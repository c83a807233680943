// The zone-file reader: what it reports beside the records, which the oracle cannot tell.
import { describe, expect, it } from 'vitest'
import { readZoneFile, readZoneFileInSteps } from '../../src/dns/zone-files/zone-file-reader.ts'

const zone = 'example.com'
const read = (text: string) => readZoneFile(text, zone)
const values = (text: string) =>
  read(text).records.map(({ name, ttl, type, value }) => `${name} ${ttl} ${type} ${value}`)

describe('a zone file', () => {
  it('may begin with a byte order mark', () => {
    expect(values('\ufeffwww A 192.0.2.1')).toEqual(['www 300 A 192.0.2.1'])
  })

  it('has its SOA, apex NS, out-of-zone and unsupported lines reported, not imported', () => {
    const { records, skipped, errors, lossy } = read(
      '@ SOA a.example. b.example. 1 2 3 4 5\n@ NS x.example.\n NS y.example.\nsub NS z.example.\n' +
        'example.org. A 192.0.2.1\nx APL anything at all\ny RRSIG whatever\nsub CH TXT x\n$INCLUDE /etc/passwd\n',
    )
    expect(records.map(({ name }) => name)).toEqual(['sub'])
    expect(lossy.map(({ line }) => line)).toEqual([6, 8, 9])
    expect(errors).toEqual([])
    expect(skipped.map(({ line, reason }) => `${line} ${reason}`)).toEqual([
      '1 soa',
      '2 apex_ns',
      '3 apex_ns',
      '5 out_of_zone',
      '6 unsupported_type',
      '7 dnssec',
      '8 other_class',
      '9 include',
    ])
    expect(skipped[4]).toMatchObject({ text: 'x APL anything at all', detail: expect.stringContaining('APL') })
  })

  it('takes the default of 300 seconds where nothing says otherwise', () => {
    expect(values('a A 192.0.2.1\nb 60 A 192.0.2.2\nc A 192.0.2.3')).toEqual([
      'a 300 A 192.0.2.1',
      'b 60 A 192.0.2.2',
      'c 60 A 192.0.2.3',
    ])
  })

  it('has ttls outside 30-86400 clamped, with a note', () => {
    const { records, notes } = read('a 5 A 192.0.2.1\nb 1w A 192.0.2.2\n')
    expect(records.map(({ ttl }) => ttl)).toEqual([30, 86_400])
    expect(notes.map(({ line }) => line)).toEqual([1, 2])
  })

  it('has a repeated record skipped, and told which line was first', () => {
    const { records, skipped } = read('a A 192.0.2.1\nA.example.com. A 192.0.2.1\n')
    expect(records.length).toBe(1)
    expect(skipped).toMatchObject([{ line: 2, reason: 'duplicate', detail: expect.stringContaining('line 1') }])
  })

  it('has what became of every line told, lines with the same result together', () => {
    const { lines, counts } = read(
      '$TTL 300\n@ NS x.example.\n NS y.example.\na A 192.0.2.1\n\n; note\nb TXT (\n "x" )\nc 5 A 192.0.2.3\nc A 192.0.2.4\nd A 192.0.2.5',
    )
    expect(lines.map(({ line, lastLine, result }) => `${line}-${lastLine} ${result}`)).toEqual([
      '2-3 skipped',
      '4-8 imported',
      '9-9 changed',
      '10-11 imported',
    ])
    expect(lines[2]?.detail).toContain('TTL 5')
    expect(counts).toEqual({ imported: 4, changed: 1, skipped: 2 })
  })

  it('has $GENERATE written out within bounds, and its errors named by their number', () => {
    expect(values('$GENERATE 9-11 h$ A 192.0.2.$\n TXT x')).toEqual([
      'h9 300 A 192.0.2.9',
      'h10 300 A 192.0.2.10',
      'h11 300 A 192.0.2.11',
    ])
    const { errors } = read('$GENERATE 254-300 h$ A 192.0.2.$\n$GENERATE 0-2147483647 a A 192.0.2.1\nb A 192.0.2.1\n')
    expect(errors.map(({ line }) => line)).toEqual([1, 2])
    expect(errors[0]?.detail).toContain('With 256')
    const duplicates = readZoneFileInSteps('$GENERATE 0-2147483647 a A 192.0.2.1\n', 'example.com', 700)
    let steps = 0
    while (!duplicates.next().done) steps++
    expect(steps, 'as many lines as records may be imported, 500 in a step').toBe(1)
    expect(read('$GENERATE 1-3 h$.example.org. A 192.0.2.$\n').skipped).toMatchObject([{ reason: 'out_of_zone' }])
  })

  it('refuses a record that points at itself', () => {
    expect(read('a CNAME a\n@ ALIAS @\nb DNAME c.b\nc CNAME b.example.net.\n').errors.map(({ line }) => line)).toEqual([
      1, 2, 3,
    ])
  })

  it('gives comments of a record along with it', () => {
    const { records } = read('a A 192.0.2.1 ; the first\nb TXT ( "x" ; one\n "y" ) ; two\n; alone\nc A 192.0.2.3\n')
    expect(records.map(({ comment }) => comment)).toEqual(['the first', 'one two', undefined])
  })

  it('reads ALIAS both as a plain line and from the comment form of our export', () => {
    expect(values('@ ALIAS a.example.net.\n;@berth www 60 IN ALIAS b.example.net. ; why\n; ALIAS no\n')).toEqual([
      '@ 300 ALIAS a.example.net',
      'www 60 ALIAS b.example.net',
    ])
  })

  it('keeps its own comment form from changing the meaning of the next line', () => {
    const text = 'a 60 A 192.0.2.1\n;@berth b 90 IN ALIAS (\n AAAA ::1\n'
    expect(values(text)).toEqual(['a 60 A 192.0.2.1', 'a 60 AAAA ::1'])
    expect(read(text).errors.map(({ line }) => line)).toEqual([2])
    expect(read(';@berth b 90 IN A 192.0.2.1\n').errors.length).toBe(1)
  })

  it('keeps the line number of what is wrong, and reads on', () => {
    const { records, errors } = read(
      'a A 1.2.3\n\nb TXT (\n "x\nc A 192.0.2.1\n$FOO\n$GENERATE 1-9 x\nd ) A 192.0.2.1\n',
    )
    expect(records.map(({ name }) => name)).toEqual(['c'])
    expect(errors.map(({ line }) => line)).toEqual([1, 4, 6, 7, 8])
  })

  it('never guesses names after an $ORIGIN that could not be read', () => {
    const { records, errors } = read('$ORIGIN a b\nwww A 192.0.2.1\n TXT x\nc.example.com. A 192.0.2.1\n')
    expect(records.map(({ name }) => name)).toEqual(['c'])
    expect(errors.map(({ line }) => line)).toEqual([1, 2, 3])
  })

  it('refuses a first line without a name, and a line after a name that was refused', () => {
    expect(read(' A 192.0.2.1').errors.length).toBe(1)
    expect(read('a A 192.0.2.1\nb..c A 192.0.2.1\n AAAA ::1').errors.map(({ line }) => line)).toEqual([2, 3])
  })

  it('stops after 1,000 errors', () => {
    expect(read('x\n'.repeat(5000)).errors.length).toBe(1001)
  })

  it('converts generic rdata of known types, and refuses what is malformed', () => {
    expect(values('a TYPE1 \\# 4 c0000201\nb HTTPS \\# 10 0001 00 0003 0002 01bb\n'.replace('10', '9'))).toEqual([
      'a 300 A 192.0.2.1',
      'b 300 HTTPS 1 . port=443',
    ])
    for (const rdata of ['MX \\# 2 000a', 'CNAME \\# 2 c000', 'TXT \\# 2 0561', 'AAAA \\# 1 00', 'ALIAS \\# 1 00']) {
      expect(read(`a ${rdata}`).errors.length).toBe(1)
    }
  })
})
