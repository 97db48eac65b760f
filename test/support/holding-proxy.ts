/**
 * A proxy to Postgres that holds back answers. After a chosen statement, its connection returns nothing until the test
 * releases it.
 */
import { createConnection, createServer, type Socket } from 'node:net';

export type HoldingProxy = {
  readonly url: string;
  /** Holds the answer of the next statement that contains this text; resolves when the statement was sent. */
  hold(text: string): Promise<void>;
  /** Lets the held answers through. */
  release(): void;
  /** Breaks the connections of held answers for the client; for the server they stay open. */
  lose(): void;
  close(): Promise<void>;
};

export async function startHoldingProxy(target: string): Promise<HoldingProxy> {
  const { hostname, port: target_port } = new URL(target);
  const sockets = new Set<Socket>();
  let wanted: { text: string; wentBy: () => void } | null = null;
  const held: { near: Socket; far: Socket }[] = [];
  const lost = new Set<Socket>();
  const end = (socket: Socket) => void (lost.has(socket) || socket.destroy());
  const server = createServer((near) => {
    const far = createConnection({ host: hostname, port: Number(target_port) });
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket);
      socket.on('error', () => end(other));
      socket.on('close', () => end(other));
    }
    near.on('data', (sent) => {
      if (wanted !== null && sent.includes(wanted.text)) {
        far.pause();
        held.push({ near, far });
        wanted.wentBy();
        wanted = null;
      }
      far.write(sent);
    });
    far.on('data', (answered) => near.write(answered));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  const url = new URL(target);
  url.port = String(port);
  url.searchParams.delete('host');
  return {
    url: url.href,
    hold: (text) => new Promise((wentBy) => (wanted = { text, wentBy })),
    release: () => {
      for (const { far } of held.splice(0)) far.resume();
    },
    lose: () => {
      for (const { near, far } of held.splice(0)) {
        lost.add(far);
        near.destroy();
      }
    },
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
