/** A TCP proxy that can break its connections or let them hang, like an outage. */

import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect, createServer, type Socket } from 'node:net';
import { Transform } from 'node:stream';

export type Cut = {
  port: number;
  /** Breaks all connections and refuses new ones. */
  cut(): Promise<void>;
  restore(): Promise<void>;
  /** Connections stay open and new ones are accepted, but nothing is forwarded. */
  hang(): void;
  goOn(): void;
  /**
   * Passes the traffic to the watcher as latin1: requests before the server gets them, answers before the client gets
   * them.
   */
  watch(watcher: Watcher | undefined): void;
  close(): Promise<void>;
};

/** Functions that receive each chunk of the traffic. If one returns `lost`, the chunk is dropped and the connection stays open. */
type Watcher = { sent?(text: string): 'lost' | void; answered?(text: string): void };

export async function cutTo(target: { host: string; port: number }): Promise<Cut> {
  const sockets = new Set<Socket>();
  let hangs = false;
  let watcher: Watcher | undefined;
  const server = createServer((client) => {
    const upstream = connect(target.port, target.host);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        sockets.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    client.pipe(watched((text) => watcher?.sent?.(text))).pipe(upstream);
    upstream.pipe(watched((text) => watcher?.answered?.(text))).pipe(client);
    if (hangs) for (const socket of [client, upstream]) socket.pause();
  });
  const listen = async (port: number) => {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
  };
  const breakOff = async () => {
    if (!server.listening) return;
    const closed = once(server, 'close');
    server.close();
    for (const socket of sockets) socket.destroy();
    await closed;
  };
  await listen(0);
  const { port } = server.address() as AddressInfo;
  return {
    port,
    cut: breakOff,
    restore: () => listen(port),
    hang: () => {
      hangs = true;
      for (const socket of sockets) socket.pause();
    },
    goOn: () => {
      hangs = false;
      for (const socket of sockets) socket.resume();
    },
    watch: (other) => {
      watcher = other;
    },
    close: breakOff,
  };
}

function watched(see: (text: string) => 'lost' | void): Transform {
  return new Transform({
    transform: (chunk: Buffer, _encoding, done) => {
      if (see(chunk.toString('latin1')) === 'lost') done();
      else done(null, chunk);
    },
  });
}
