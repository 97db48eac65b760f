/**
 * A way to ClickHouse on which single statements get lost, lose their answer, arrive late or arrive twice:
 *
 *   const way = await statementsTo(clickhouse_url);
 *   way.meet((statement) => (statement.table === 'events' ? 'late' : undefined));
 *   …
 *   await way.release();
 *
 * What is on the way stays on it when its sender has gone: it is a network, not a client.
 */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export type Statement = {
  /** Its text, and what follows it in the request, as latin1. */
  readonly text: string;
  /** `insert`, `delete`, `alter`, `select`, … */
  readonly verb: string;
  /** Of an insert, delete or alter; empty otherwise. */
  readonly table: string;
  /** What a write is: `insert into events`, `insert into usage_buckets from usage_buckets`. */
  readonly kind: string;
};

export type Fate =
  /** The sender is told that the connection broke, and the store hears nothing. */
  | 'lost'
  /** The store does it, and the sender is told that the connection broke. */
  | 'answer lost'
  /** The store does it; the sender waits until `release`, and is told then that the connection broke. */
  | 'answer held'
  /** The sender is told that the connection broke; the store hears it with `release`. */
  | 'late'
  /** The sender waits, until `release` or until it gives up; the store hears it with `release`. */
  | 'held'
  /** The store hears it twice, one after the other; the sender has one answer. */
  | 'twice'
  /** The sender has its answer; the store hears it again with `release`. */
  | 'again late';

export type StatementWay = {
  /** To put in the place of the URL that was given. */
  readonly url: string;
  /** Asked for each statement; in place of the one before. */
  meet(decide: ((statement: Statement) => Fate | Promise<Fate | undefined> | undefined) | undefined): void;
  /** How many statements wait for `release`. */
  readonly waiting: number;
  /** Delivers what waits, in order; resolves with what the store said of each: a status, and the text of a refusal. */
  release(): Promise<{ status: number; text: string }[]>;
  close(): Promise<void>;
};

type Letter = { method: string; url: string; headers: IncomingHttpHeaders; body: Buffer };
type Reply = { status: number; headers: IncomingHttpHeaders; body: Buffer };
type Waiting = { letter?: Letter; answered?: (reply?: Reply) => void };

export async function statementsTo(clickhouse_url: string): Promise<StatementWay> {
  const target = new URL(clickhouse_url);
  const waiting: Waiting[] = [];
  let decide: Parameters<StatementWay['meet']>[0];
  const server = createServer((incoming, outgoing) => {
    void carry(incoming, outgoing).catch(() => outgoing.destroy());
  });
  const carry = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const { method = 'POST', url = '/', headers } = incoming;
    const letter = { method, url, headers, body: await whole(incoming) };
    const fate = await decide?.(statementOf(letter));
    if (fate === 'late') waiting.push({ letter });
    if (fate === 'lost' || fate === 'late') return void outgoing.destroy();
    if (fate === 'held') return void waiting.push({ letter, answered: (reply) => answer(outgoing, reply!) });
    const reply = await deliver(target, letter);
    if (fate === 'answer lost') return void outgoing.destroy();
    if (fate === 'answer held') return void waiting.push({ answered: () => outgoing.destroy() });
    if (fate === 'twice') await deliver(target, letter);
    if (fate === 'again late') waiting.push({ letter });
    answer(outgoing, reply);
  };
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = new URL(clickhouse_url);
  url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url: url.href,
    meet: (other) => {
      decide = other;
    },
    get waiting() {
      return waiting.length;
    },
    release: async () => {
      const replies: { status: number; text: string }[] = [];
      for (const { letter, answered } of waiting.splice(0)) {
        const reply = letter && (await deliver(target, letter));
        answered?.(reply);
        if (reply) replies.push({ status: reply.status, text: reply.body.toString('latin1') });
      }
      return replies;
    },
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** What a statement is, by its first words: parameters come in the address, or as a part of the body. */
function statementOf({ url, body }: Letter): Statement {
  const given = new URL(url, 'http://localhost').searchParams.get('query') ?? '';
  const text = given + body.toString('latin1');
  const [, verb = '', rest = ''] =
    /(?:^|\n)\s*(insert|delete|alter|select|with|kill|create|drop|system|optimize|truncate)\s([\s\S]*)/i.exec(text) ??
    [];
  const table = /^(?:into\s+|from\s+|table\s+)(?:table\s+)?`?(\w+)`?/i.exec(rest)?.[1] ?? '';
  const [, source, isFunction] = /\sfrom\s+(\w+)(\()?/i.exec(rest.slice(table.length + 5)) ?? [];
  const isInsert = verb.toLowerCase() === 'insert';
  const written = isInsert ? `insert into ${table}` : `${verb.toLowerCase()} ${table}`.trim();
  const kind = isInsert && source !== undefined && isFunction === undefined ? `${written} from ${source}` : written;
  return { text, verb: verb.toLowerCase(), table, kind };
}

export function isWrite({ verb }: Statement): boolean {
  return ['insert', 'delete', 'alter'].includes(verb);
}

/** A connection of its own: it neither waits for others nor ends with them. */
function deliver(target: URL, { method, url, headers, body }: Letter): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const { 'transfer-encoding': _none, connection: _other, ...kept } = headers;
    const asked = request(
      {
        host: target.hostname,
        port: target.port,
        method,
        path: url,
        headers: { ...kept, host: target.host, 'content-length': body.length },
        agent: false,
      },
      (response) => {
        whole(response).then(
          (answered) => resolve({ status: response.statusCode ?? 0, headers: response.headers, body: answered }),
          reject,
        );
      },
    );
    asked.on('error', reject);
    asked.end(body);
  });
}

/** To a sender that may have gone. */
function answer(outgoing: ServerResponse, { status, headers, body }: Reply): void {
  const { 'transfer-encoding': _none, connection: _other, ...kept } = headers;
  outgoing.on('error', () => {});
  outgoing.writeHead(status, { ...kept, 'content-length': body.length });
  outgoing.end(body);
}

async function whole(stream: AsyncIterable<Buffer>): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of stream) pieces.push(piece);
  return Buffer.concat(pieces);
}
