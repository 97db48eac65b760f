/** Where S3 may be: docs/rules/exports.md, "Connections". */
import { expect } from 'chai';
import { checkScheduledTask, jobConfig } from '../../../../core/platform/scheduled-task/record.ts';

const check = (endpoint_url: string, may_be_private = false) =>
  checkScheduledTask({
    interval: 'hourly',
    provider_type: 's3',
    may_be_private,
    job_config: jobConfig.parse({ bucket: 'exports', endpoint_url }),
  });

describe('the endpoint of S3', () => {
  const TAKEN = ['https://s3.example.com', 'https://s3.example.com:9443/', 'https://1.2.3.4', 'https://[2606:4700::1]'];
  for (const url of TAKEN)
    it(`taken: ${url}`, () => {
      check(url);
    });

  const PRIVATE = [
    'https://127.0.0.1:9443',
    'https://0177.0.0.1',
    'https://2130706433',
    'https://0x7f.1',
    'https://１２７.０.０.１',
    'https://10.0.0.1',
    'https://169.254.169.254',
    'https://192.0.0.1',
    'https://198.18.0.1',
    'https://[::1]',
    'https://[::127.0.0.1]',
    'https://[::ffff:10.0.0.1]',
    'https://[64:ff9b::7f00:1]',
    'https://[2002:7f00:1::]',
    'https://[fd00::1]',
    'https://localhost:9443',
    'https://s3.localhost.',
  ];
  for (const url of PRIVATE)
    it(`of a private address, unless that is allowed: ${url}`, () => {
      expect(() => check(url)).to.throw('job_config.endpoint_url: must be of a host with a public address');
      check(url, true);
    });

  const REFUSED: [url: string, why: string][] = [
    ['https://user:hidden@s3.example.com', 'must not hold a user or a password'],
    ['https://user@s3.example.com', 'must not hold a user or a password'],
    ['https://s3.example.com/path', 'must be a host alone, without a path, a query or a fragment'],
    ['https://s3.example.com/?x=hidden', 'must be a host alone, without a path, a query or a fragment'],
    ['https://s3.example.com#hidden', 'must be a host alone, without a path, a query or a fragment'],
  ];
  for (const [url, why] of REFUSED)
    it(`refused, and not said again: ${url}`, () => {
      for (const may_be_private of [true, false])
        expect(() => check(url, may_be_private)).to.throw(new RegExp(`^job_config.endpoint_url: ${why}$`));
    });

  it('without TLS, unless a private address is allowed', () => {
    expect(() => check('http://s3.example.com')).to.throw('job_config.endpoint_url: must be an https URL');
    check('http://s3.example.com', true);
  });
});
