import { createHash, randomUUID, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { StatementError } from '../../clickhouse/tokens.ts';
import type { Surroundings } from './engine.ts';
import { type ParsedStatement, parseStatement } from './statement.ts';

export interface Request {
  query_id: string;
  surroundings: Surroundings;
  statement: ParsedStatement;
  /** Data of an insert: the text after FORMAT, then the body. */
  data: AsyncIterable<Buffer>;
  /** Format of the answer if the statement names none. */
  default_format: string;
  /** The answer begins only after the statement has ended. */
  waits_for_end: boolean;
  wants_gzip: boolean;
}

export interface Credentials {
  username: string;
  password: string;
}

/** Parameters of the interface itself; every other one is a setting of the statement. */
const INTERFACE_PARAMETERS = new Set([
  'query',
  'query_id',
  'database',
  'default_format',
  'user',
  'password',
  'wait_end_of_query',
  'buffer_size',
  'quota_key',
  'stacktrace',
  'client_protocol_version',
  'close_session',
]);
const UNSUPPORTED = ['session_id', 'role', 'compress', 'decompress'];
const TEXT_BYTES_MAX = 256 * 1024 * 1024;

export async function readRequest(incoming: IncomingMessage): Promise<Request> {
  const parameters = new URL(incoming.url ?? '/', 'http://localhost').searchParams;
  const body = decoded(incoming);
  let rest: AsyncIterable<Buffer> = body;
  const boundary = /multipart\/form-data;.*boundary="?([^";]+)/i.exec(incoming.headers['content-type'] ?? '')?.[1];
  if (boundary !== undefined) {
    for (const [name, value] of formFields(await whole(body), boundary)) parameters.append(name, value);
    rest = nothing();
  }
  refuse(parameters);
  const { statement, data } = await readStatement(parameters.getAll('query').join(''), rest);
  if (incoming.method === 'GET' && statement.kind !== 'read') {
    throw new StatementError(164, 'READONLY', 'Cannot execute query in readonly mode: use method POST');
  }
  const query_id = parameters.get('query_id') || randomUUID();
  return {
    query_id,
    surroundings: parseSurroundings(parameters, incoming),
    statement,
    data,
    default_format: parameters.get('default_format') ?? header(incoming, 'x-clickhouse-format') ?? 'TabSeparated',
    waits_for_end: isOn(parameters.get('wait_end_of_query')),
    wants_gzip:
      isOn(parameters.get('enable_http_compression')) && /\bgzip\b/.test(header(incoming, 'accept-encoding') ?? ''),
  };
}

/** Whether the request has the user's name and password, in any of the three forms that a server accepts. */
export function isAuthorised(incoming: IncomingMessage, { username, password }: Credentials): boolean {
  const basic = /^Basic (.+)$/i.exec(header(incoming, 'authorization') ?? '')?.[1];
  const parameters = new URL(incoming.url ?? '/', 'http://localhost').searchParams;
  const given =
    basic === undefined
      ? `${header(incoming, 'x-clickhouse-user') ?? parameters.get('user')}:${header(incoming, 'x-clickhouse-key') ?? parameters.get('password')}`
      : Buffer.from(basic, 'base64').toString('utf8');
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(`${username}:${password}`));
}

function parseSurroundings(parameters: URLSearchParams, incoming: IncomingMessage): Surroundings {
  const entries = [...parameters];
  const settings = entries.filter(([name]) => !INTERFACE_PARAMETERS.has(name) && !name.startsWith('param_'));
  const params = entries.flatMap(([name, value]): [string, string][] =>
    name.startsWith('param_') ? [[name.slice('param_'.length), value]] : [],
  );
  const database = parameters.get('database') ?? header(incoming, 'x-clickhouse-database');
  // If the client has set `log_comment`, that is the statement's id: it is unique, like a generated one.
  const id = parameters.get('log_comment') || randomUUID();
  return { id, settings, params, ...(database ? { database } : {}) };
}

function refuse(parameters: URLSearchParams): void {
  for (const name of UNSUPPORTED) {
    const value = parameters.get(name);
    if (value === null || value === '' || value === '0') continue;
    throw new StatementError(48, 'NOT_IMPLEMENTED', `${name} is not supported by the embedded engine`);
  }
}

/**
 * Reads a statement: its text is the parameter `query` followed by the body. After the FORMAT of an insert its data begin, which are passed
 * on as bytes and never decoded.
 */
async function readStatement(query: string, body: AsyncIterable<Buffer>) {
  const parameter = Buffer.from(query, 'utf8');
  const early = parameter.length === 0 ? undefined : parseBytes(parameter);
  if (early?.data_start !== undefined) {
    return { statement: inUtf8(early), data: chained(parameter.subarray(early.data_start), body) };
  }
  const text = Buffer.concat([parameter, await whole(body)]);
  const statement = parseBytes(text);
  return { statement: inUtf8(statement), data: chained(text.subarray(statement.data_start ?? text.length), nothing()) };
}

/** Parses a statement with one character per byte, so that positions are byte offsets, whatever data follow it. */
function parseBytes(bytes: Buffer): ParsedStatement {
  return parseStatement(bytes.toString('latin1'));
}

function inUtf8(statement: ParsedStatement): ParsedStatement {
  const shift = (span: { start: number; end: number }) => ({
    start: utf8(statement.text.slice(0, span.start)).length,
    end: utf8(statement.text.slice(0, span.end)).length,
  });
  const { input, format_span } = statement;
  return {
    ...statement,
    text: utf8(statement.text),
    ...(format_span ? { format_span: shift(format_span) } : {}),
    ...(input ? { input: { ...shift(input), structure: utf8(input.structure) } } : {}),
  };
}

function utf8(bytes: string): string {
  return Buffer.from(bytes, 'latin1').toString('utf8');
}

function decoded(incoming: IncomingMessage): AsyncIterable<Buffer> {
  const encoding = header(incoming, 'content-encoding') ?? 'identity';
  if (encoding === 'identity' || encoding === '') return incoming;
  const decoders = { gzip: createGunzip, deflate: createInflate, br: createBrotliDecompress };
  const create = decoders[encoding as keyof typeof decoders];
  if (!create) throw new StatementError(48, 'NOT_IMPLEMENTED', `Content-Encoding ${encoding} is not supported`);
  const decoder = create();
  incoming.on('error', (error) => decoder.destroy(error));
  return incoming.pipe(decoder);
}

async function* nothing(): AsyncGenerator<Buffer> {}

async function* chained(first: Buffer, rest: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  if (first.length > 0) yield first;
  yield* rest;
}

async function whole(pieces: AsyncIterable<Buffer>): Promise<Buffer> {
  const all: Buffer[] = [];
  let bytes = 0;
  for await (const piece of pieces) {
    bytes += piece.length;
    if (bytes > TEXT_BYTES_MAX) {
      throw new StatementError(
        307,
        'TOO_MANY_BYTES',
        'The statement is too long: name it in the URL and send the data as body',
      );
    }
    all.push(piece);
  }
  return Buffer.concat(all);
}

function* formFields(body: Buffer, boundary: string): Generator<[string, string]> {
  for (const part of body.toString('latin1').split(`--${boundary}`).slice(1, -1)) {
    const head = part.indexOf('\r\n\r\n');
    const name = /name="([^"]*)"/.exec(part.slice(0, head))?.[1];
    if (head < 0 || name === undefined) throw new StatementError(36, 'BAD_ARGUMENTS', 'A part of the form has no name');
    if (/filename="/.test(part.slice(0, head))) {
      throw new StatementError(48, 'NOT_IMPLEMENTED', 'External tables are not supported by the embedded engine');
    }
    yield [utf8(name), utf8(part.slice(head + 4, -2))];
  }
}

function header(incoming: IncomingMessage, name: string): string | undefined {
  const value = incoming.headers[name];
  return Array.isArray(value) ? value[0] : value;
}

function isOn(value: string | null): boolean {
  return value === '1' || value === 'true';
}
