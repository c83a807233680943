// Zone files by hand that use what RFC 1035 and BIND allow, each with what it is about.

export const corpusStart =
  '$TTL 300\n@ IN SOA ns1.example.net. hostmaster.example.net. 1 2 3 4 5\n@ IN NS ns1.example.net.\n'

type ZoneFileCase = { about: string; text: string; refused?: true }

export const zoneFileCorpus: ZoneFileCase[] = [
  {
    about: 'class before ttl and ttl before class',
    text: `${corpusStart}a IN 60 A 192.0.2.1\nb 60 IN A 192.0.2.2\nc 60 A 192.0.2.3\n`,
  },
  {
    about: 'owners inherited over blank lines and comments',
    text: `${corpusStart}a A 192.0.2.1\n\n; note\n  ; note\n\tAAAA ::1\n   TXT x\n`,
  },
  {
    about: 'parentheses over lines with comments inside',
    text: `${corpusStart}a TXT ( "one" ; first (\n  two\n\n ) \nb A ( 192.0.2.1 )\n`,
  },
  { about: 'nested parentheses and none around the owner', text: `${corpusStart}a ( ( MX ) 10\n) b.example.net.\n` },
  { about: 'parentheses and semicolons in quotes', text: `${corpusStart}a TXT "(;)" "\\";" \\; \\( x;comment\n` },
  { about: 'adjacent quoted strings without a blank', text: `${corpusStart}a TXT "a""b"c"d"\n` },
  { about: 'escapes in text', text: `${corpusStart}a TXT "\\097\\\\\\"\\000" \\097b\\ c a\\"b\n` },
  { about: 'non-ASCII text as UTF-8 octets', text: `${corpusStart}a TXT "é🚀" ü\n` },
  { about: 'tabs inside quoted text', text: `${corpusStart}a TXT "a\tb"\n` },
  { about: 'long text in several strings', text: `${corpusStart}a TXT "${'x'.repeat(255)}" "${'y'.repeat(200)}"\n` },
  {
    about: 'CRLF line ends',
    text: `${corpusStart}a A 192.0.2.1\n A 192.0.2.2\nb TXT (\n "x"\n )\n`.replaceAll('\n', '\r\n'),
  },
  { about: 'no line end at the end', text: `${corpusStart}a A 192.0.2.1` },
  {
    about: 'relative and absolute $ORIGIN',
    text: `${corpusStart}$ORIGIN sub\na CNAME b\n@ MX 5 @\n$ORIGIN x.example.com.\nc CNAME d.e\n$ORIGIN .\nf.example.com CNAME g.example.org\n`,
  },
  {
    about: 'an owner inherited past $ORIGIN',
    text: `${corpusStart}a A 192.0.2.1\n$ORIGIN sub.example.com.\n AAAA ::1\n`,
  },
  {
    about: 'ttl units',
    text: `${corpusStart}$TTL 1h30m\na A 192.0.2.1\nb 1D A 192.0.2.2\nc 2h3s IN A 192.0.2.3\n$TTL 90\nd A 192.0.2.4\n`,
  },
  {
    about: 'no $TTL: the last ttl written',
    text: '@ 600 SOA ns1.example.net. h.example.net. 1 2 3 4 5\n NS ns1.example.net.\na A 192.0.2.1\nb 60 A 192.0.2.2\nc A 192.0.2.3\n',
  },
  {
    about: 'no ttl at all: the minimum of the SOA',
    text: '@ SOA ns1.example.net. h.example.net. (1 2 3 4\n 777)\n NS ns1.example.net.\na A 192.0.2.1\nb 60 A 192.0.2.2\nc A 192.0.2.3\n',
  },
  {
    about: 'mixed case everywhere',
    text: `${corpusStart}A.EXAMPLE.COM. in a 192.0.2.1\nWWW cname Foo.Example.NET.\nc cAa 0 ISSUE "X"\n`,
  },
  {
    about: 'out-of-zone lines',
    text: `${corpusStart}a A 192.0.2.1\nwww.example.org. A 192.0.2.1\nexample.org. MX 1 @\nnotexample.com. A 192.0.2.9\n`,
  },
  {
    about: 'types of all kinds',
    text: `${corpusStart}a A 192.0.2.1\nb PTR c\nd SSHFP 1 1 ${'ab'.repeat(20)}\ne NAPTR 1 1 "u" "s" "!^.*$!x!" .\nf TYPE65280 \\# 2 abcd\n`,
  },
  {
    about: 'places, keys and certificates',
    text: `${corpusStart}a LOC 42 21 54 N 71 06 18 W -24m 30m\nb LOC 52 N 4 53 E 0 1.5m 25m 1234m\nc CERT PGP 0 0 mQIN BFUo\nc OPENPGPKEY mQINBFUo\nd CDS 0 0 0 00\nd CDNSKEY 0 3 0 AA==\ne SMIMEA 3 0 1 ${'ab'.repeat(32)}\nf URI 10 1 "https://example.com/"\ng HINFO PC Linux\nh DNAME other\n`,
  },
  {
    about: 'types that are stored by number',
    text: `${corpusStart}a RP admin text\nb AFSDB 1 db\nc KX 10 kx.example.net.\nd TYPE17 \\# 10 0161 0162 00 0163 0164 00\n`,
  },
  {
    about: 'dots and other octets within labels',
    text: `${corpusStart}a\\.b A 192.0.2.1\nMy\\ Printer\\195\\188 TXT x\nc MX 10 d\\.e\nf CNAME g\\046h.example.net.\n$ORIGIN x\\.y.example.com.\n@ A 192.0.2.2\n`,
  },
  {
    about: '$GENERATE',
    text: `${corpusStart}$GENERATE 1-3 host-$ A 192.0.2.$\n$GENERATE 0-9/3 h\${0,3,d} 60 IN CNAME t-\${10,4,x}\n$GENERATE 1-2 x\${-1} TXT "\\"a $ $$\\" b\\$"\n$GENERATE 8-9 \${0,7,n}.ip6 PTR h\${0,2,o}.example.com.\n$GENERATE 26-27 \${0,0,N} MX "10 m$"\n`,
  },
  {
    about: 'generic rdata of known types',
    text: `${corpusStart}a A \\# 4 c0000201\nb TYPE28 \\# 16 20010db8 00000000 00000000 00000001\nc TYPE16 \\# 4 03 616263\nd MX \\# 10 000a 016d 037a7a7a 00 00\n`.replace(
      '10 000a 016d 037a7a7a 00 00',
      '9 000a 016d 037a7a7a 00',
    ),
  },
  {
    about: 'generic CAA, SRV, DS, TLSA and CNAME',
    text: `${corpusStart}a TYPE257 \\# 8 00 05 6973737565 3b\nb TYPE33 \\# 11 0001 0002 0003 017a 0161 00\nd DS \\# 24 0001 08 01 ${'cd'.repeat(20)}\nd NS \\# 5 0161 0162 00\ne TLSA \\# 35 03 01 01 ${'ef'.repeat(32)}\nf CNAME \\# 5 0141 0142 00\n`,
  },
  {
    about: 'generic HTTPS',
    text: `${corpusStart}a TYPE65 \\# 17 0001 00 0001 0003 02 6832 0003 0002 01bb\n`.replace('17', '16'),
  },
  {
    about: 'HTTPS parameters quoted and not',
    text: `${corpusStart}a HTTPS 1 . alpn="h2,h3" port="443" ipv4hint=192.0.2.1,192.0.2.2\nb HTTPS 1 svc alpn=h2 key65400="a b;c" no-default-alpn\nc SVCB 0 @\n`,
  },
  {
    about: 'the alpn examples of RFC 9460',
    text: `${corpusStart}a SVCB 16 foo.example.org. alpn="f\\\\\\\\oo\\\\,bar,h2"\nb SVCB 16 foo.example.org. alpn=f\\\\\\092oo\\092,bar,h2\n`,
  },
  {
    about: 'HTTPS keys in any order with mandatory',
    text: `${corpusStart}a HTTPS 16 foo.example.org. (\n alpn=h2,h3-19 mandatory=ipv4hint,alpn\n ipv4hint=192.0.2.1 )\n`,
  },
  {
    about: 'a known key in its generic form',
    text: `${corpusStart}a HTTPS 1 . key3=\\001\\187\nb HTTPS 1 . key7="/q{?dns}"\n`,
  },
  { about: 'escapes in names that need none', text: `${corpusStart}\\097bc A 192.0.2.1\nx\\045y CNAME \\119ww\n` },
  {
    about: 'wildcards, underscores and slashes',
    text: `${corpusStart}* A 192.0.2.1\n*.sub TXT x\n_dmarc TXT "v=DMARC1; p=none"\n_sip._tcp SRV 0 5 5060 sip\n0/25 NS ns.example.net.\n1 CNAME 1.0/25\n`,
  },
  {
    about: 'DS with an algorithm by name and a split digest',
    text: `${corpusStart}d NS ns.example.net.\nd DS 12345 ECDSAP256SHA256 2 ( ${'ab'.repeat(16)}\n ${'CD'.repeat(16)} )\n`,
  },
  {
    about: 'CAA unquoted and quoted',
    text: `${corpusStart}@ CAA 0 issue letsencrypt.org\n@ CAA 128 iodef "mailto:a@example.com"\n@ CAA 0 issue ";"\n`,
  },
  { about: 'the null MX and root targets', text: `${corpusStart}@ MX 0 .\n_x._tcp SRV 0 0 0 .\n` },
  {
    about: 'IPv6 in every spelling',
    text: `${corpusStart}a AAAA 2001:DB8:0:0:1:0:0:1\na AAAA ::ffff:192.0.2.1\na AAAA ::1.2.3.4\na AAAA 1::\na AAAA 1:2:3:4:5:6:7:8\n`,
  },
  { about: 'the same record twice', text: `${corpusStart}a A 192.0.2.1\na A 192.0.2.1\nA A 192.0.2.1\n` },
  { about: 'CLASS1 and a type by number', text: `${corpusStart}a CLASS1 TYPE1 192.0.2.1\nb 60 CLASS1 A 192.0.2.2\n` },
  {
    about: 'names that look like types, classes and ttls',
    text: `${corpusStart}A A 192.0.2.1\nIN A 192.0.2.2\n60 A 192.0.2.3\nTXT IN TXT TXT\nMX MX 1 MX\n`,
  },
  { about: 'comments that touch fields', text: `${corpusStart}a A 192.0.2.1;x\nb TXT "a";x "b"\n;c A 192.0.2.3\n` },
  { about: 'a quote that is never closed', text: `${corpusStart}a TXT "x\nb A 192.0.2.1\n`, refused: true },
  { about: 'a parenthesis that is never closed', text: `${corpusStart}a TXT ( x\nb A 192.0.2.1\n`, refused: true },
  { about: 'a parenthesis that was never opened', text: `${corpusStart}a TXT x )\n`, refused: true },
  { about: 'a $GENERATE without a type', text: `${corpusStart}$GENERATE 1-2 a$ 192.0.2.$\n`, refused: true },
  { about: 'a $GENERATE with a bad range', text: `${corpusStart}$GENERATE 2-1 a$ A 192.0.2.$\n`, refused: true },
  { about: 'a $GENERATE out of range', text: `${corpusStart}$GENERATE 255-256 a$ A 192.0.2.$\n`, refused: true },
  { about: 'a malformed substitution', text: `${corpusStart}a NAPTR 1 1 "u" "s" "!^.*$!x" .\n`, refused: true },
  { about: 'a latitude out of range', text: `${corpusStart}a LOC 91 N 0 E 0m\n`, refused: true },
  { about: 'a short fingerprint', text: `${corpusStart}a SSHFP 1 1 abcd\n`, refused: true },
  { about: 'an address out of range', text: `${corpusStart}a A 256.0.0.1\n`, refused: true },
  { about: 'a short address', text: `${corpusStart}a A 192.0.2\n`, refused: true },
  { about: 'a type that does not exist', text: `${corpusStart}a FOO x\n`, refused: true },
  { about: 'a label of 64 octets', text: `${corpusStart}${'a'.repeat(64)} A 192.0.2.1\n`, refused: true },
  { about: 'an empty label', text: `${corpusStart}a..b A 192.0.2.1\n`, refused: true },
  { about: 'a digest of the wrong length', text: `${corpusStart}d NS ns\nd DS 1 8 2 ABCD\n`, refused: true },
  { about: 'a preference out of range', text: `${corpusStart}a MX 65536 b\n`, refused: true },
  { about: 'a field too many', text: `${corpusStart}a MX 1 b c\n`, refused: true },
  { about: 'an escape past 255', text: `${corpusStart}a TXT "\\256"\n`, refused: true },
  { about: 'generic rdata of another length', text: `${corpusStart}a A \\# 4 c00002\n`, refused: true },
  { about: 'a mandatory key that is missing', text: `${corpusStart}a HTTPS 1 . mandatory=port\n`, refused: true },
  { about: 'an HTTPS key twice', text: `${corpusStart}a HTTPS 1 . port=1 port=2\n`, refused: true },
  { about: 'an unknown directive', text: `${corpusStart}$FOO x\na A 192.0.2.1\n`, refused: true },
]
