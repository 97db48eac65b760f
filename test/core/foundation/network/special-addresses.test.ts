/** Which addresses are not of the public internet: RFC 6890, its registries at IANA, and those in which another address stands. */
import { expect } from 'chai';
import { isSpecialAddress, isSpecialHost } from '../../../../core/foundation/network/special-addresses.ts';

/** The first and the last of each range, and what is next to it on either side. */
const RANGES: [first: string, last: string, before: string | null, after: string | null][] = [
  ['0.0.0.0', '0.255.255.255', null, '1.0.0.0'],
  ['10.0.0.0', '10.255.255.255', '9.255.255.255', '11.0.0.0'],
  ['100.64.0.0', '100.127.255.255', '100.63.255.255', '100.128.0.0'],
  ['127.0.0.0', '127.255.255.255', '126.255.255.255', '128.0.0.0'],
  ['169.254.0.0', '169.254.255.255', '169.253.255.255', '169.255.0.0'],
  ['172.16.0.0', '172.31.255.255', '172.15.255.255', '172.32.0.0'],
  ['192.0.0.0', '192.0.0.255', '191.255.255.255', '192.0.1.0'],
  ['192.0.2.0', '192.0.2.255', '192.0.1.255', '192.0.3.0'],
  ['192.31.196.0', '192.31.196.255', '192.31.195.255', '192.31.197.0'],
  ['192.52.193.0', '192.52.193.255', '192.52.192.255', '192.52.194.0'],
  ['192.88.99.0', '192.88.99.255', '192.88.98.255', '192.88.100.0'],
  ['192.168.0.0', '192.168.255.255', '192.167.255.255', '192.169.0.0'],
  ['192.175.48.0', '192.175.48.255', '192.175.47.255', '192.175.49.0'],
  ['198.18.0.0', '198.19.255.255', '198.17.255.255', '198.20.0.0'],
  ['198.51.100.0', '198.51.100.255', '198.51.99.255', '198.51.101.0'],
  ['203.0.113.0', '203.0.113.255', '203.0.112.255', '203.0.114.0'],
  ['224.0.0.0', '255.255.255.255', '223.255.255.255', null],
  ['::', '::255.255.255.255', null, '::1:0:0'],
  ['::7f00:1', '::ffff:ffff', null, null],
  ['::ffff:0:0', '::ffff:169.254.169.254', null, null],
  ['::ffff:0:0:0', '::ffff:0:127.0.0.1', null, '::ffff:1:0:0'],
  ['64:ff9b::', '64:ff9b::10.0.0.1', '64:ff9a:ffff:ffff:ffff:ffff:ffff:ffff', '64:ff9b::1:0:0'],
  ['64:ff9b:1::', '64:ff9b:1:ffff:ffff:ffff:ffff:ffff', '64:ff9b:0:ffff::', '64:ff9b:2::'],
  ['100::', '100::ffff:ffff:ffff:ffff', 'ff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '100:0:0:1::'],
  ['2001::', '2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff', '2000:ffff::', '2001:200::'],
  ['2001:db8::', '2001:db8:ffff::1', '2001:db7:ffff::', '2001:db9::'],
  ['2002::', '2002:ffff::1', '2001:ffff::', '2003::'],
  ['2002:7f00:1::', '2002:a00:1::', null, null],
  ['2620:4f:8000::', '2620:4f:8000:ffff::', '2620:4f:7fff::', '2620:4f:8001::'],
  ['3fff::', '3fff:fff::', '3ffe:ffff::', '3fff:1000::'],
  ['5f00::', '5f00:ffff::', '5eff:ffff::', '5f01::'],
  ['fc00::', 'fdff:ffff::1', 'fbff:ffff::', null],
  ['fe80::', 'febf:ffff::1', 'fe7f:ffff::', null],
  ['fe80::1%eth0', 'fec0::', null, null],
  ['fec0::', 'feff:ffff::1', null, null],
  ['ff00::', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', null, null],
];

describe('special addresses', () => {
  for (const [first, last, before, after] of RANGES)
    it(`${first} to ${last} are, and those beside them are not`, () => {
      for (const address of [first, last]) expect(isSpecialAddress(address), address).to.equal(true);
      for (const address of [before, after])
        if (address !== null) expect(isSpecialAddress(address), address).to.equal(false);
    });

  for (const address of ['1.1.1.1', '8.8.8.8', '2606:4700:4700::1111', '2a00:1450:4001:82a::200e', 'example.com', ''])
    it(`not: ${address || 'nothing'}`, () => {
      expect(isSpecialAddress(address)).to.equal(false);
    });

  it('but not what is allowed, alone or as a range', () => {
    const allowed = ['127.0.0.1', '10.1.0.0/16', '::1'];
    expect(['127.0.0.1', '10.1.2.3', '::1'].map((one) => isSpecialAddress(one, allowed))).to.not.include(true);
    expect(['127.0.0.2', '10.2.0.1', '::2'].map((one) => isSpecialAddress(one, allowed))).to.not.include(false);
  });

  const HOSTS = ['0177.0.0.1', '2130706433', '0x7f.1', '127.1', '[::1]', '[::127.0.0.1]', 'LOCALHOST.', 'a.localhost'];
  for (const host of HOSTS)
    it(`as the host of a URL: ${host}`, () => {
      expect(isSpecialHost(new URL(`https://${host}/`).hostname)).to.equal(true);
    });
  for (const host of ['s3.eu-central-1.amazonaws.com', 'localhost.example.com', '[2606:4700::1]'])
    it(`not as the host of a URL: ${host}`, () => {
      expect(isSpecialHost(new URL(`https://${host}/`).hostname)).to.equal(false);
    });
});
