/**
 * docs/rules/exports.md, "Connections" and "Whole or not there": an S3-compatible store that is malicious, or fails at
 * a critical moment.
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { expect } from 'chai';
import type { FarthingError } from '../../../core/foundation/error.ts';
import type { WrittenFile } from '../../../integrations/export-destination.ts';
import { createS3Destination } from '../../../integrations/s3/export-destination.ts';
import { type NamesServer, startNamesServer } from '../../support/names-server.ts';

const MB = 1_000_000;
const BYTES = Buffer.from('a file of a few bytes');

type Asked = { what: string; body: Buffer; request: IncomingMessage; response: ServerResponse };

/** A store that answers like S3, unless `rude` answers the request. */
class Store {
  rude: (asked: Asked) => boolean = () => false;
  readonly objects = new Map<string, { bytes: Buffer; mark: string }>();
  readonly uploads = new Map<string, { mark: string; parts: Map<number, Buffer> }>();
  readonly asked: string[] = [];
  keepsMarks = true;
  sumsUp = false;
  #count = 0;

  answer(request: IncomingMessage, body: Buffer, response: ServerResponse): void {
    const { pathname, searchParams } = new URL(request.url!, 'http://store');
    const id = searchParams.get('uploadId') ?? '';
    const what = `${request.method} ${searchParams.has('uploads') ? 'begin' : id ? 'upload' : 'object'}`;
    this.asked.push(what);
    if (this.rude({ what, body, request, response })) return;
    this.#say(what, { pathname, id, number: Number(searchParams.get('partNumber')), request, body, response });
  }

  #say(
    what: string,
    {
      pathname,
      id,
      number,
      request,
      body,
      response,
    }: Omit<Asked, 'what'> & Record<'pathname' | 'id', string> & { number: number },
  ): void {
    const upload = this.uploads.get(id);
    if (what === 'POST begin') {
      const begun = `upload-${(this.#count += 1)}`;
      this.uploads.set(begun, { mark: String(request.headers['x-amz-meta-farthing-upload']), parts: new Map() });
      response.end(`<InitiateMultipartUploadResult><UploadId>${begun}</UploadId></InitiateMultipartUploadResult>`);
    } else if (what === 'HEAD object') this.#head(pathname, response);
    else if (!upload) response.writeHead(404).end('<Error><Code>NoSuchUpload</Code></Error>');
    else if (what === 'PUT upload') {
      upload.parts.set(number, body);
      response.setHeader('etag', this.sumsUp ? `"${md5(body)}"` : `"part-${number}"`).end();
    } else if (what === 'DELETE upload') {
      this.uploads.delete(id);
      response.writeHead(204).end();
    } else this.complete(pathname, id, response);
  }

  complete(pathname: string, id: string, response?: ServerResponse): void {
    const { mark, parts } = this.uploads.get(id)!;
    this.uploads.delete(id);
    this.objects.set(pathname, { mark, bytes: Buffer.concat([...parts.values()]) });
    response?.end('<CompleteMultipartUploadResult><ETag>"x"</ETag></CompleteMultipartUploadResult>');
  }

  #head(pathname: string, response: ServerResponse): void {
    const found = this.objects.get(pathname);
    if (!found) return void response.writeHead(404).end();
    if (this.keepsMarks) response.setHeader('x-amz-meta-farthing-upload', found.mark);
    response.setHeader('content-length', found.bytes.length).setHeader('etag', this.#etagOf(found.bytes)).end();
  }

  /** Computes the ETag like S3: for a multipart upload of one part it is a digest of the digest. */
  #etagOf(bytes: Buffer): string {
    return this.sumsUp ? `"${md5(Buffer.from(md5(bytes), 'hex'))}-1"` : '"x"';
  }
}

const md5 = (bytes: Buffer) => createHash('md5').update(bytes).digest('hex');

describe('a store that speaks S3', () => {
  let server: Server;
  let endpoint: string;
  let store: Store;
  let names: NamesServer;

  before(async () => {
    names = await startNamesServer();
    server = createServer((request, response) => {
      response.on('error', () => {});
      void buffer(request).then((body) => store.answer(request, body, response));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  beforeEach(() => {
    store = new Store();
  });
  after(() => {
    names.stop();
    server.closeAllConnections();
    server.close();
  });

  function written(change: object = {}, signal = new AbortController().signal): Promise<WrittenFile> {
    const options = {
      bucket: 'exports',
      region: 'eu-central-1',
      endpoint,
      path_style: true,
      encryption: null,
      credentials: { access_key_id: 'A', secret_access_key: 'B', session_token: null },
      allow_private_addresses: true,
      times: { plain: 2_000, part: 2_000, complete: 2_000 },
      ...change,
    };
    async function* bytes() {
      yield BYTES;
    }
    const onBegin = () => Promise.resolve();
    const file = { key: 'a/b.csv', content_type: 'text/csv', bytes: bytes(), signal, begun: null, onBegin };
    return createS3Destination(options).write(file);
  }
  const fault = (work: Promise<unknown>): Promise<FarthingError> =>
    work.then(
      () => expect.fail('it was taken'),
      (error) => error,
    );
  const object = () => store.objects.get('/exports/a/b.csv')?.bytes.toString();

  it('has the file when it is completed, and not before', async () => {
    const file = await written();
    expect(object()).to.equal(undefined);
    await file.commit();
    expect(object()).to.equal(BYTES.toString());
    expect(store.asked).to.deep.equal(['POST begin', 'PUT upload', 'POST upload']);
  });

  for (const status of [200, 400, 403, 500])
    it(`an answer without an end (${status}) is read a little way, and cut off`, async () => {
      let sent = 0;
      store.rude = ({ response }) => {
        response.writeHead(status);
        const more = () => {
          while (!response.destroyed && response.write(Buffer.alloc(100_000, '<Error>'))) sent += 100_000;
        };
        response.on('drain', more);
        more();
        return true;
      };
      const error = await fault(written());
      expect(error.message).to.include('an answer without an end');
      // A rejected request is not repeated; a failed one is, and each attempt costs the same.
      expect(error.http_status_code).to.equal(status === 400 || status === 403 ? 400 : 503);
      expect(sent).to.be.below(60 * MB);
    });

  const SLOW: [what: string, rude: Store['rude']][] = [
    ['never answers', () => true],
    ['begins an answer and falls silent', ({ response }) => response.writeHead(200).write('<a>')],
    [
      'says a byte now and then',
      ({ response }) => {
        response.writeHead(200);
        const timer = setInterval(() => (response.destroyed ? clearInterval(timer) : response.write(' ')), 50);
        return true;
      },
    ],
  ];
  for (const [what, rude] of SLOW)
    for (const at of ['POST begin', 'PUT upload', 'POST upload'])
      it(`one that ${what} at ${at} is waited for so long and no longer`, async () => {
        store.rude = (asked) => asked.what === at && rude(asked);
        const times = { plain: 300, part: 300, complete: 300 };
        const error = await fault(written({ times }).then((file) => file.commit()));
        expect(error.http_status_code).to.equal(503);
        expect(error.message).to.match(/^S3 \(no answer within 0.3 seconds\)/);
      });

  it('whoever is stopped waits for no answer', async () => {
    const stopped = new AbortController();
    store.rude = ({ what }) => {
      if (what === 'PUT upload') stopped.abort(new Error('the worker is stopped'));
      return what === 'PUT upload';
    };
    const times = { plain: 60_000, part: 60_000, complete: 60_000 };
    expect((await fault(written({ times }, stopped.signal))).message).to.equal('the worker is stopped');
    expect(store.uploads.size).to.equal(0);
  });

  const UNCLEAR: [what: string, answer: (response: ServerResponse) => unknown][] = [
    ['answers 500', (response) => response.writeHead(500).end('<Error><Code>InternalError</Code></Error>')],
    ['answers 200 with an error', (response) => response.end('<Error><Code>InternalError</Code></Error>')],
    ['breaks the connection off', (response) => response.destroy()],
    ['never answers', () => undefined],
  ];
  const completing = (answer: (response: ServerResponse) => unknown, keeps: boolean) => (asked: Asked) => {
    const { what, request, response } = asked;
    const id = new URL(request.url!, endpoint).searchParams.get('uploadId') ?? '';
    if (what !== 'POST upload' || !store.uploads.has(id)) return false;
    if (keeps) store.complete('/exports/a/b.csv', id);
    else store.uploads.delete(id);
    answer(response);
    return true;
  };
  for (const [what, answer] of UNCLEAR) {
    it(`one that keeps the file and ${what} has it: it is there, once`, async () => {
      store.rude = completing(answer, true);
      const file = await written({ times: { plain: 2_000, part: 2_000, complete: 1_000 } });
      await file.commit();
      expect(object()).to.equal(BYTES.toString());
    });
    it(`one that loses the file and ${what} is tried again with another upload`, async () => {
      store.rude = completing(answer, false);
      const times = { plain: 2_000, part: 2_000, complete: 1_000 };
      const file = await written({ times });
      expect((await fault(file.commit())).http_status_code).to.equal(503);
      await file.discard();
      store.rude = () => false;
      await (await written()).commit();
      expect(object()).to.equal(BYTES.toString());
    });
  }

  for (const [what, status, answer, why] of [
    ['may write and not read', 503, 500, /these credentials may not look \(s3:GetObject\)$/],
    ['may write and not read', 400, 403, /these credentials may not look \(s3:GetObject\)$/],
    ['are looked at by a store that fails', 503, 500, /asking after it failed: S3 \(/],
  ] as const)
    it(`credentials that ${what} (${answer}): the file may be there, and where it is said`, async () => {
      const complete = completing((response) => response.writeHead(answer).end(), true);
      store.rude = (asked) => {
        if (asked.what !== 'HEAD object') return complete(asked);
        asked.response.writeHead(what.includes('read') ? 403 : 500).end();
        return true;
      };
      const error = await fault((await written()).commit());
      expect(error.http_status_code).to.equal(status);
      expect(error.message).to.include('the file may be there all the same, whole, as s3://exports/a/b.csv: ');
      expect(error.message).to.match(why);
      expect(object()).to.equal(BYTES.toString());
    });

  it('what is not there, of which they may know, is not said to be', async () => {
    store.rude = completing((response) => response.writeHead(403).end(), false);
    expect((await fault((await written()).commit())).message).to.not.include('may be there');
  });

  it('what stood under the name before is not taken for the file', async () => {
    await (await written()).commit();
    store.rude = completing((response) => response.writeHead(500).end(), false);
    expect((await fault((await written()).commit())).http_status_code).to.equal(503);
  });

  it('one that keeps no metadata and sums up nothing is not believed', async () => {
    store.keepsMarks = false;
    store.rude = completing((response) => response.writeHead(500).end(), true);
    expect((await fault((await written()).commit())).http_status_code).to.equal(503);
  });

  it('one that keeps no metadata is believed by the sum of the parts', async () => {
    [store.keepsMarks, store.sumsUp] = [false, true];
    store.rude = completing((response) => response.writeHead(500).end(), true);
    await (await written()).commit();
    expect(object()).to.equal(BYTES.toString());
  });

  const guarded = () => ({
    allow_private_addresses: false,
    name_servers: { servers: [names.address], timeout_ms: 500 },
  });
  for (const address of ['127.0.0.1', '10.1.2.3', '169.254.169.254'])
    it(`a name that leads to ${address} is refused at once`, async () => {
      names.answer(address);
      const port = new URL(endpoint).port;
      const error = await fault(written({ ...guarded(), endpoint: `http://inner.example.com:${port}` }));
      expect(error.http_status_code).to.equal(400);
      expect(error.message).to.equal('the endpoint of S3 leads to an address that is not public');
      expect(store.asked).to.deep.equal([]);
    });
  for (const host of ['127.0.0.1', '[::1]', '[::127.0.0.1]', '[fd00::1]'])
    it(`${host} is refused at once`, async () => {
      const error = await fault(written({ ...guarded(), endpoint: `https://${host}:9443` }));
      expect(error.message).to.equal('the endpoint of S3 leads to an address that is not public');
    });

  it('one where nobody answers may be there another time', async () => {
    const error = await fault(written({ endpoint: 'http://127.0.0.1:1' }));
    expect([error.http_status_code, error.message]).to.deep.equal([
      503,
      'S3 (ECONNREFUSED) is not available, try again',
    ]);
  });
});
