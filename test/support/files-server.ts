/** A server of files whose behaviour depends on the path. */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

type Behaviour = string | ((response: ServerResponse) => void);

export type FilesServer = {
  readonly url: string;
  /** Paths of the requests. */
  readonly requested_paths: string[];
  serve(path: string, behaviour: Behaviour): void;
  stop(): Promise<void>;
};

export async function startFilesServer(): Promise<FilesServer> {
  const files = new Map<string, Behaviour>();
  const asked: string[] = [];
  const server = createServer(({ url = '' }, response) => {
    asked.push(url);
    const file = files.get(url);
    if (file === undefined) response.writeHead(404).end();
    else if (typeof file === 'string') response.end(file);
    else file(response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requested_paths: asked,
    serve: (path, behaviour) => void files.set(path, behaviour),
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
