// The guards against requests to addresses that are not public, in every class and spelling.

import assert from 'node:assert/strict';
import { networkInterfaces } from 'node:os';
import { test } from 'node:test';
import { UpstreamError } from '../../src/broker/protocol.ts';
import { type AddressFields, AddressRules, checkHost } from '../../src/broker/upstream-connections.ts';

/** Rules for `https` at port 443 of a server that listens elsewhere. */
const rulesFor = (
  allowNetworks: readonly string[],
  fields: Partial<AddressFields> = {},
  readOwn?: () => readonly string[],
): AddressRules =>
  new AddressRules(
    { scheme: 'https', port: 443, allowNetworks, targetNetworks: null, ownPorts: [7700], ...fields },
    readOwn,
  );
const permits = (address: string, allowed: readonly string[] = [], fields: Partial<AddressFields> = {}): boolean =>
  rulesFor(allowed, fields).permits(address);

const CLASSES: Readonly<Record<string, readonly string[]>> = {
  private: ['10.0.0.1', '10.255.255.255', '172.16.0.1', '172.31.255.255', '192.168.1.1', 'fc00::1', 'fdff::1'],
  loopback: ['127.0.0.1', '127.255.255.254', '::1', '0:0:0:0:0:0:0:1'],
  'link-local': ['169.254.0.1', '169.254.169.254', 'fe80::1', 'febf::1', 'fec0::1'],
  multicast: ['224.0.0.1', '239.255.255.255', 'ff02::1'],
  unspecified: ['0.0.0.0', '0.1.2.3', '::'],
  reserved: ['240.0.0.1', '255.255.255.255', '192.0.0.8', '192.88.99.1', '100::1', '4000::1'],
  'carrier NAT': ['100.64.0.1', '100.127.255.255'],
  benchmarking: ['198.18.0.1', '198.19.255.255', '2001:2::1'],
  documentation: ['192.0.2.1', '198.51.100.1', '203.0.113.1', '2001:db8::1', '3fff::1'],
  metadata: ['169.254.169.254', '100.100.100.200', 'fd00:ec2::254', '168.63.129.16', '192.0.0.192', 'fe80::a9fe:a9fe'],
  mapped: ['::ffff:10.0.0.1', '::ffff:7f00:1', '0:0:0:0:0:FFFF:127.0.0.1', '::ffff:0:127.0.0.1'],
  compatible: ['::127.0.0.1', '::10.0.0.1', '::7f00:1'],
  NAT64: ['64:ff9b::127.0.0.1', '64:ff9b::a00:1', '64:ff9b::a9fe:a9fe', '64:ff9b:1::10.0.0.1', '64:ff9b:1:a00:0:100::'],
  '6to4': ['2002:7f00:1::', '2002:a00:1::1', '2002:a9fe:a9fe::'],
  Teredo: ['2001:0:4136:e378:8000:63bf:f5ff:fffe', '2001:0:a00:1:8000:63bf:3fff:fdd2'],
  ISATAP: ['2606:4700::5efe:10.0.0.1', '2606:4700::200:5efe:7f00:1'],
  malformed: ['', '1.2.3', '0x7f.0.0.1', '127.1', 'fe80::1%eth0', '2130706433', '[::1]', 'localhost', '8.8.8.8 '],
};
test('SSRF: addresses that are not public are refused', () => {
  for (const [name, addresses] of Object.entries(CLASSES))
    for (const address of addresses) assert.equal(permits(address), false, `${name}: ${address}`);
});

test('SSRF: the machine’s own addresses are refused', () => {
  const own = Object.values(networkInterfaces()).flatMap((entries) => entries ?? []);
  assert.notEqual(own.length, 0);
  assert.deepEqual(
    own.filter(({ address }) => permits(address)),
    [],
  );
});

test('SSRF: own addresses are refused also if they are public, unless a network allows them', () => {
  const own = ['8.8.8.8', '2606:4700::1'];
  const rules = (allowed: readonly string[]) => rulesFor(allowed, {}, () => own);
  for (const address of [...own, '::ffff:8.8.8.8', '64:ff9b::808:808', '2606:4700:0:0::1'])
    assert.equal(rules([]).permits(address), false, address);
  assert.equal(rules([]).permits('8.8.4.4'), true);
  assert.equal(rules(['8.8.8.8/32']).permits('8.8.8.8'), true);
});

test('public addresses are permitted, also through a translator', () => {
  const addresses = ['8.8.8.8', '1.1.1.1', '172.32.0.1', '100.128.0.1', '2606:4700::1111', '2a00:1450:4001::8a'];
  const embedded = ['::ffff:8.8.8.8', '64:ff9b::808:808', '2002:808:808::1'];
  assert.deepEqual(
    [...addresses, ...embedded].filter((address) => !permits(address)),
    [],
  );
});

test('an allowed network permits its addresses and no others', () => {
  assert.equal(permits('10.1.2.3', ['10.1.0.0/16']), true);
  assert.equal(permits('::ffff:10.1.2.3', ['10.1.0.0/16']), true);
  assert.equal(permits('10.2.2.3', ['10.1.0.0/16']), false);
  assert.equal(permits('fd12::1', ['fd12::/32', '10.0.0.0/8']), true);
  assert.equal(permits('127.0.0.1', ['fd12::/32', '10.0.0.0/8']), false);
});

test('an embedded address is permitted only if both it and the outer one are', () => {
  assert.equal(permits('64:ff9b::10.0.0.1', ['10.0.0.0/8']), true);
  assert.equal(permits('64:ff9b::10.0.0.1', ['64:ff9b::/96']), false);
  assert.equal(permits('::10.0.0.1', ['10.0.0.0/8']), false);
  assert.equal(permits('::10.0.0.1', ['10.0.0.0/8', '::/96']), true);
});

test('without TLS only an allowed network is permitted', () => {
  const plain = { scheme: 'http' } as const;
  assert.equal(permits('8.8.8.8', [], plain), false);
  assert.equal(permits('8.8.8.8', ['8.8.8.0/24'], plain), true);
  assert.equal(permits('64:ff9b::a00:1', ['10.0.0.0/8'], plain), false);
});

test('an allowed IPv6 network permits loopback by itself, and no IPv4 address', () => {
  assert.equal(permits('::1', ['::1/128']), true);
  assert.equal(permits('::2', ['::1/128']), false);
  for (const address of ['::1', '::']) assert.equal(permits(address, ['::/96']), true, address);
  assert.equal(permits('fd12::1', ['::/0']), true);
  for (const address of ['127.0.0.1', '::ffff:127.0.0.1', '64:ff9b::127.0.0.1', '::127.0.0.1', '2002:7f00:1::'])
    for (const network of ['::/0', '::/96']) assert.equal(permits(address, [network]), false, `${address} ${network}`);
  assert.equal(permits('127.0.0.1', ['::ffff:127.0.0.0/104']), true);
  assert.equal(permits('::1', ['0.0.0.0/0']), false);
});

const EVERYTHING = ['0.0.0.0/0', '::/0'];

test('SSRF: metadata services and link-local addresses are refused whatever a target allows', () => {
  const addresses = [
    '169.254.169.254',
    '169.254.170.2',
    '169.254.0.1',
    '100.100.100.200',
    '168.63.129.16',
    '192.0.0.192',
    'fe80::1',
    'febf::1',
    'fe80::a9fe:a9fe',
    'fd00:ec2::254',
    'fd00:ec2::23',
    'fd20:ce::254',
    'fd00:42::42',
    '::ffff:169.254.169.254',
    '::ffff:a9fe:a9fe',
    '::169.254.169.254',
    '::ffff:0:169.254.169.254',
    '64:ff9b::169.254.169.254',
    '64:ff9b:1::169.254.169.254',
    '2002:a9fe:a9fe::',
    '::ffff:168.63.129.16',
    '2001:0:a9fe:a9fe:8000:63bf:3fff:fdd2',
    '2606:4700::5efe:169.254.169.254',
  ];
  for (const scheme of ['https', 'http'] as const) {
    assert.deepEqual(
      addresses.filter((address) => permits(address, [...EVERYTHING, `${address.split('%')[0]}/32`], { scheme })),
      [],
    );
  }
  assert.equal(permits('10.0.0.1', EVERYTHING), true);
  assert.equal(permits('fd00:ec3::1', EVERYTHING), true);
});

test("SSRF: the server's own ports are refused at every address of this machine, whatever a target allows", () => {
  const own = () => ['192.168.7.7', '2606:4700::7', 'fd07::7'];
  const addresses = [
    '127.0.0.1',
    '127.9.9.9',
    '0.0.0.0',
    '::1',
    '::',
    '::ffff:127.0.0.1',
    '::ffff:0.0.0.0',
    '64:ff9b::127.0.0.1',
    '192.168.7.7',
    '::ffff:192.168.7.7',
    '2606:4700::7',
    'fd07::7',
    '2002:c0a8:707::',
  ];
  const rules = (port: number) => rulesFor(EVERYTHING, { port, ownPorts: [7700] }, own);
  for (const address of addresses) {
    assert.equal(rules(7700).permits(address), false, address);
    assert.equal(rules(7701).permits(address), true, address);
  }
  assert.equal(rules(7700).permits('192.168.7.8'), true);
});

test('an allowed network counts only in the networks that the server allows', () => {
  const limited = { targetNetworks: ['10.0.0.0/8', 'fd12::/16'] };
  assert.equal(permits('10.1.2.3', EVERYTHING, limited), true);
  assert.equal(permits('::ffff:10.1.2.3', EVERYTHING, limited), true);
  assert.equal(permits('fd12::1', EVERYTHING, limited), true);
  assert.equal(permits('10.1.2.3', [], limited), false);
  for (const address of ['127.0.0.1', '::1', '192.168.1.1', 'fd13::1']) {
    assert.equal(permits(address, EVERYTHING, limited), false, address);
    assert.equal(permits(address, EVERYTHING, { targetNetworks: [] }), false, address);
  }
  assert.equal(permits('8.8.8.8', [], { targetNetworks: [] }), true);
  // Only these addresses are permitted without TLS.
  assert.equal(permits('8.8.8.8', EVERYTHING, { ...limited, scheme: 'http' }), false);
});

test('an invalid network is rejected', () => {
  for (const network of ['10.0.0.0', '10.0.0.0/33', '10.0.0/8', '::/129', 'x/8', '10.0.0.0/8/8', '10.0.0.0/-1', '/8'])
    assert.throws(() => rulesFor([network]), UpstreamError, network);
});

const ODD_HOSTS = [
  '127.1',
  '0x7f000001',
  '2130706433',
  '0177.0.0.1',
  '127.0.0.1.',
  'localhost.',
  '1.2.3.4.5',
  'a.0x1f',
  '１２７.0.0.1',
  '[::FFFF:1]',
  '[0:0::1]',
  '[::1',
  '::1',
  '[fe80::1%25eth0]',
  '[fe80::1%eth0]',
  '[::ffff:127.0.0.1]',
  '[]',
  '',
  '.',
  'a..b',
  '-a.b',
  'a-.b',
  'A.example',
  'a b',
  'a/b',
  'a@b',
  'a:80',
  'a\0b',
  'a%2eb',
  'ä.example',
  '*',
  `${'a'.repeat(64)}.example`,
];
test('SSRF: a host in an odd spelling is rejected', () => {
  for (const host of ODD_HOSTS) assert.throws(() => checkHost(host), UpstreamError, host);
  assert.equal(checkHost('[::1]'), '::1');
  assert.equal(checkHost('[::ffff:7f00:1]'), '::ffff:7f00:1');
  for (const host of ['127.0.0.1', 'api.example.com', 'localhost', 'a_b.x-1.example', '1password.com'])
    assert.equal(checkHost(host), host);
});
