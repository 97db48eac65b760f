/**
 * A proxy between the service and the fake of a provider. While it quotes, it answers each request with an error that
 * contains the whole request, as a careless provider or gateway may do.
 */
import { type IncomingMessage, request as requestHttp, type ServerResponse } from 'node:http';
import { FakeServer, readBody } from './fake-server.ts';

type QuotingOptions = {
  readonly target: URL;
  /** Called before each request is answered. */
  onRequest?(name: string): Promise<void>;
  /** Body of an error in the form of the provider. */
  buildError(request: { readonly path: string; readonly quote: string }): unknown;
};

export class QuotingProxy extends FakeServer<never> {
  /** Status of the errors; null if requests are passed on. */
  status: number | null = null;
  /** Everything that was quoted. */
  quoted = '';
  /** Target of the redirect, if the status is a redirect. */
  location = '';
  readonly #options: QuotingOptions;

  constructor(options: QuotingOptions) {
    super();
    this.#options = options;
  }

  protected async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readBody(request);
    const name = `${request.method} ${request.url}`;
    this.requests.push(name);
    await this.#options.onRequest?.(name);
    if (this.status === null) return this.#pass(request, response, body);
    const { authorization = String(request.headers['x-api-key'] ?? '') } = request.headers;
    const decoded = Buffer.from(authorization.replace(/^Basic /, ''), 'base64').toString();
    const quote = `${request.url} ${authorization} ${decoded} ${body} ${decodeURIComponent(body)}`;
    this.quoted += quote;
    const error = this.#options.buildError({ path: request.url!, quote });
    const headers = { 'content-type': 'application/json', ...(this.location ? { location: this.location } : {}) };
    response.writeHead(this.status, headers).end(JSON.stringify(error));
  }

  #pass(request: IncomingMessage, response: ServerResponse, body: string): void {
    const { hostname, port } = this.#options.target;
    const { method, url: path, headers } = request;
    const passed = requestHttp({ hostname, port, method, path, headers }, (answer) => {
      response.writeHead(answer.statusCode!, answer.headers);
      answer.pipe(response);
    });
    passed.on('error', () => response.destroy());
    passed.end(body);
  }
}
