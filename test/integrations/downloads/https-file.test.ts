/** docs/rules/imports.md, "Files behind a URL": refused addresses, and limits of a download. */
import type { ServerResponse } from 'node:http';
import { expect } from 'chai';
import type { FarthingError } from '../../../core/foundation/error.ts';
import { checkFileUrl } from '../../../core/platform/import/file-url.ts';
import { downloadFile } from '../../../integrations/downloads/https-file.ts';
import { type FilesServer, startFilesServer } from '../../support/files-server.ts';
import { type NamesServer, startNamesServer } from '../../support/names-server.ts';

describe('a file behind a URL', () => {
  let files: FilesServer;
  let names: NamesServer;
  before(async () => {
    files = await startFilesServer();
    names = await startNamesServer();
  });
  after(async () => {
    names.stop();
    await files.stop();
  });

  const REFUSED = [
    'http://example.com/a.csv',
    'ftp://example.com/a.csv',
    'file:///etc/passwd',
    'data:text/csv,a',
    'javascript:alert(1)',
    'https://user:secret@example.com/',
    '//example.com/a.csv',
    'a.csv',
    '',
  ];
  for (const url of REFUSED)
    it(`is refused before anybody is asked: ${url || 'nothing'}`, () => {
      expect(() => checkFileUrl(url, [])).to.throw(/^file_url: must /);
    });

  async function got(url: string, change: object = {}): Promise<string> {
    const options = {
      bytes_max: 1_000,
      allowed_addresses: ['127.0.0.1'],
      signal: AbortSignal.timeout(10_000),
      ...change,
    };
    const pieces: Buffer[] = [];
    for await (const piece of downloadFile(url, options)) pieces.push(piece);
    return Buffer.concat(pieces).toString();
  }
  const fault = (url: string, change: object = {}): Promise<FarthingError> =>
    got(url, change).then(
      (text) => expect.fail(`it was given: ${text}`),
      (error) => error,
    );
  const guarded = () => ({ allowed_addresses: [], name_servers: { servers: [names.address], timeout_ms: 500 } });
  const NOT_PUBLIC = 'file_url: names a host that is not there, or that is at an address that is not public';

  const PRIVATE = [
    '127.0.0.1',
    '127.1',
    '2130706433',
    '0x7f.0.0.1',
    '0.0.0.0',
    '10.0.0.1',
    '172.16.0.1',
    '192.168.1.1',
    '169.254.169.254',
    '100.64.0.1',
    '224.0.0.1',
    '[::1]',
    '[::]',
    '[::ffff:127.0.0.1]',
    '[::ffff:a9fe:a9fe]',
    '[64:ff9b::7f00:1]',
    '[fc00::1]',
    '[fd00:ec2::254]',
    '[fe80::1]',
    '[::127.0.0.1]',
    '[::7f00:1]',
    '[fec0::1]',
    'localhost',
  ];
  for (const host of PRIVATE)
    it(`of ${host} is not connected to`, async () => {
      expect((await fault(`https://${host}/a.csv`, guarded())).message).to.equal(NOT_PUBLIC);
    });

  for (const address of ['127.0.0.1', '10.1.2.3', '169.254.169.254'])
    it(`of a name that leads to ${address} is not connected to, also where it led elsewhere before`, async () => {
      names.answer('203.0.113.1');
      const { port } = new URL(files.url);
      names.answer(address);
      expect((await fault(`https://inner.example.com:${port}/a.csv`, guarded())).message).to.equal(NOT_PUBLIC);
      expect(files.requested_paths).to.deep.equal([]);
    });

  it('of a name that is nowhere is refused in the same words, so that nobody learns which names lead inside', async () => {
    names.answer('NXDOMAIN');
    expect((await fault('https://nowhere.example.com/a.csv', guarded())).message).to.equal(NOT_PUBLIC);
  });

  it('is given, and so is one behind redirects', async () => {
    files.serve('/a.csv', 'a,b\n');
    files.serve('/moved', (response) => response.writeHead(302, { location: '/again' }).end());
    files.serve('/again', (response) => response.writeHead(307, { location: `${files.url}/a.csv` }).end());
    expect(await got(`${files.url}/a.csv`)).to.equal('a,b\n');
    expect(await got(`${files.url}/moved`)).to.equal('a,b\n');
  });

  const FAULTS: [what: string, path: string, status: number, why: RegExp][] = [
    ['one that leads to another scheme', '/to-file', 400, /must be an https URL/],
    ['one that leads on for ever', '/loop', 400, /more than 5 times/],
    ['one that leads nowhere', '/nowhere', 400, /302 was answered/],
    ['one that is not there', '/none', 400, /404 was answered/],
    ['one that says that it is longer', '/said', 400, /longer than 1000 bytes/],
    ['one that is longer', '/long', 400, /longer than 1000 bytes/],
    ['a server that fails', '/failing', 503, /500 was answered/],
    ['a server that is busy', '/busy', 503, /429 was answered/],
    ['one that breaks off', '/broken', 503, /the file is not available/],
    ['a server that says nothing', '/silent', 503, /the file is not available/],
    ['a server that falls silent', '/stalled', 503, /the file is not available/],
  ];
  before(() => {
    files.serve('/to-file', (response) => response.writeHead(302, { location: 'file:///etc/passwd' }).end());
    files.serve('/loop', (response) => response.writeHead(302, { location: '/loop' }).end());
    files.serve('/nowhere', (response) => response.writeHead(302).end());
    files.serve('/said', (response) => response.writeHead(200, { 'content-length': '5000' }).write('x'));
    files.serve('/long', (response) => response.writeHead(200).end('x'.repeat(5_000)));
    files.serve('/failing', (response) => response.writeHead(500).end());
    files.serve('/busy', (response) => response.writeHead(429).end());
    files.serve('/broken', (response) => {
      response.writeHead(200, { 'content-length': '500' }).write('x');
      setImmediate(() => response.destroy());
    });
    files.serve('/silent', () => {});
    files.serve('/stalled', (response) => void response.writeHead(200, { 'content-length': '500' }).write('x'));
  });
  for (const [what, path, status, why] of FAULTS)
    it(`${status}: ${what}`, async () => {
      const error = await fault(files.url + path, { silence_ms: 300 });
      expect(error.http_status_code, error.message).to.equal(status);
      expect(error.message).to.match(why);
    });

  const drips = (bytes: number, every_ms: number) => (response: ServerResponse) => {
    response.writeHead(200, { 'content-length': '500' });
    const timer = setInterval(() => response.write('x'.repeat(bytes)), every_ms);
    response.on('close', () => clearInterval(timer));
  };
  const SLOW: [what: string, path: string, pace: object, status: number, why: RegExp][] = [
    [
      'one that comes byte by byte, and is never silent',
      '/drips',
      { least_bytes_per_second: 1_000, patience_ms: 200 },
      503,
      /it came more slowly than 1000 bytes a second for 0.2 seconds/,
    ],
    ['one that takes too long', '/drips', { total_ms: 300 }, 400, /file_url: the file took longer than 0.005 minutes/],
    [
      'a head that comes byte by byte',
      '/head-drips',
      { patience_ms: 200, total_ms: 5_000 },
      503,
      /the file is not available/,
    ],
  ];
  before(() => {
    files.serve('/drips', drips(1, 20));
    files.serve('/head-drips', ({ socket }) => {
      socket!.write('HTTP/1.1 200 OK\r\nx-slow: ');
      const timer = setInterval(() => socket!.write('x'), 20);
      socket!.on('close', () => clearInterval(timer));
    });
    files.serve('/steady', drips(25, 20));
  });
  for (const [what, path, pace, status, why] of SLOW)
    it(`${status}: ${what}`, async () => {
      const error = await fault(files.url + path, { pace });
      expect(error.http_status_code, error.message).to.equal(status);
      expect(error.message).to.match(why);
    });

  it('is given where it is fast enough, however much longer than the patience it takes', async () => {
    const pace = { least_bytes_per_second: 100, patience_ms: 200 };
    expect(await got(`${files.url}/steady`, { pace })).to.have.length(500);
  });
  it('is not slow because whoever takes it is', async () => {
    files.serve('/quick', (response) => {
      response.write('x'.repeat(250));
      response.end('x'.repeat(250));
    });
    const options = { bytes_max: 1_000, allowed_addresses: ['127.0.0.1'], signal: AbortSignal.timeout(10_000) };
    const pace = { least_bytes_per_second: 2_500, patience_ms: 300 };
    let bytes = 0;
    for await (const piece of downloadFile(`${files.url}/quick`, { ...options, pace })) {
      bytes += piece.length;
      await new Promise((resolve) => setTimeout(resolve, 1_000));
    }
    expect(bytes).to.equal(500);
  });

  for (const location of ['https://169.254.169.254/latest', 'https://[::1]/', 'https://10.0.0.1/a.csv'])
    it(`a redirect is checked as the first was: ${location}`, async () => {
      files.serve('/inward', (response) => response.writeHead(302, { location }).end());
      expect((await fault(`${files.url}/inward`)).message).to.equal(NOT_PUBLIC);
    });
});
