/**
 * A proxy to a store that cuts the ends of answers. Either the answer ends cleanly, as from a proxy that takes a broken
 * connection for the end of the answer, or the connection breaks.
 */
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';

export type Cut = { readonly how: 'cleanly' | 'broken'; at(body: Buffer): number };

export type CuttingProxy = {
  readonly url: string;
  /** Way in which the next answers are cut; null forwards them whole. */
  cut: Cut | null;
  close(): Promise<void>;
};

export async function startCuttingProxy(target: string): Promise<CuttingProxy> {
  const server = createServer((asked, response) => {
    const url = new URL(target);
    const onward = request(
      { host: url.hostname, port: url.port, path: asked.url, method: asked.method, headers: asked.headers },
      (answer) => void passOn(answer, response, proxy.cut),
    );
    onward.on('error', () => response.destroy());
    asked.pipe(onward);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  const url = new URL(target);
  url.port = String(port);
  const close = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  const proxy: CuttingProxy = { url: url.href, cut: null, close };
  return proxy;
}

async function passOn(answer: IncomingMessage, response: ServerResponse, cut: Cut | null): Promise<void> {
  const body = Buffer.concat(await answer.toArray());
  const { 'content-length': _, 'transfer-encoding': __, connection: ___, ...headers } = answer.headers;
  response.writeHead(answer.statusCode ?? 502, headers);
  const some = body.subarray(0, cut?.at(body));
  if (cut?.how !== 'broken' || some.length === body.length) return void response.end(some);
  response.write(some, () => response.destroy());
}
