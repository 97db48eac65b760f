import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { type FileHandle, open, rm } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import type { Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip, Gzip } from 'node:zlib';
import { StatementError } from '../../clickhouse/tokens.ts';
import type { Engine, Surroundings, WriteCounts } from './engine.ts';
import type { Request } from './request.ts';
import type { Spool } from './spool.ts';
import { insertFromFile, readIntoFile, withoutFormat } from './statement.ts';

export interface AnswerContext {
  engine: Engine;
  spool: Spool;
}

/** Runs the statement of a request and answers as a server does. */
export async function answerRequest(request: Request, response: ServerResponse, served: AnswerContext): Promise<void> {
  const { statement } = request;
  response.setHeader('X-ClickHouse-Query-Id', request.query_id);
  response.setHeader('X-ClickHouse-Timezone', 'UTC');
  if (statement.kind === 'insert') return answerInsert(request, response, served);
  if (statement.kind === 'other') return answerSmall(request, response, served);
  const format = statement.format ?? request.default_format;
  if (request.waits_for_end && (await answerShort(request, response, { ...served, format }))) return;
  const in_pieces = statement.streams && (CUTTABLE.has(format) || isCuttableCustom(request, format));
  if (!in_pieces) return answerFromFile(request, response, { ...served, format });
  const { ending, ...cut } = withoutEnding(request, format);
  if (request.waits_for_end) return answerBuffered(cut.request, response, { ...served, format, ending });
  return answerStream(cut.request, response, { ...served, format, ending });
}

/** Format whose ending the engine would repeat in each piece, so we write it ourselves, once. */
const CUSTOM = 'CustomSeparated';
const ENDING = 'format_custom_result_after_delimiter';
const BETWEEN_PIECES = ['format_custom_result_before_delimiter', 'format_custom_row_between_delimiter'];

function isCuttableCustom({ surroundings: { settings } }: Request, format: string): boolean {
  return format === CUSTOM && !settings.some(([name, value]) => BETWEEN_PIECES.includes(name) && value !== '');
}

function withoutEnding(request: Request, format: string): { request: Request; ending: string } {
  const { settings } = request.surroundings;
  const ending = format === CUSTOM ? settings.find(([name]) => name === ENDING)?.[1] : undefined;
  if (ending === undefined) return { request, ending: '' };
  const others = settings.filter(([name]) => name !== ENDING);
  return { request: { ...request, surroundings: { ...request.surroundings, settings: others } }, ending };
}

/** Formats that the engine writes without a beginning or an end, so that pieces can be concatenated. */
const CUTTABLE = new Set([
  'JSONEachRow',
  'JSONStringsEachRow',
  'JSONCompactEachRow',
  'JSONCompactStringsEachRow',
  'TabSeparated',
  'TSV',
  'TabSeparatedRaw',
  'TSVRaw',
  'TSKV',
  'CSV',
  'RowBinary',
  'Native',
]);

async function answerInsert(
  request: Request,
  response: ServerResponse,
  { engine, spool }: AnswerContext,
): Promise<void> {
  const { statement, surroundings } = request;
  const write = (sql: string, of = surroundings) => engine.with(of, (connection) => connection.write(sql));
  if (statement.data_start === undefined) return finishInsert(response, await write(statement.text));
  const format = statement.format ?? '';
  // Without the first setting the engine would infer the columns from the data and not from the table.
  const settings: [string, string][] = [
    ['use_structure_from_insertion_table_in_table_functions', '1'],
    ...surroundings.settings,
  ];
  const written = await spool.withData(request.data, (path) =>
    write(insertFromFile(statement, { path, format }), { ...surroundings, settings }),
  );
  finishInsert(response, written);
}

function finishInsert(response: ServerResponse, { rows, bytes }: WriteCounts): void {
  response.setHeader('X-ClickHouse-Summary', summary({ written_rows: rows, written_bytes: bytes }));
  response.end();
}

function summary(known: Record<string, number>): string {
  const all = {
    read_rows: 0,
    read_bytes: 0,
    written_rows: 0,
    written_bytes: 0,
    result_rows: 0,
    result_bytes: 0,
    ...known,
  };
  return JSON.stringify(Object.fromEntries(Object.entries(all).map(([name, value]) => [name, String(value)])));
}

async function answerSmall(request: Request, response: ServerResponse, { engine }: AnswerContext): Promise<void> {
  const format = request.statement.format ?? request.default_format;
  const bytes = await engine.with(request.surroundings, (connection) => connection.run(request.statement.text, format));
  beginAnswer(response, { format, summary: {} });
  response.end(bytes);
}

interface ReadOptions extends AnswerContext {
  format: string;
}

interface PiecesOptions extends ReadOptions {
  /** Text after the last row. */
  ending: string;
}

/**
 * Answers from memory if the answer is short, as most are. It is read in one step, on a thread, because planning a statement would block
 * the event loop. Returns false if the answer is longer: nothing has been sent then, and the statement must be run again.
 */
async function answerShort(request: Request, response: ServerResponse, { engine, format }: ReadOptions) {
  const { statement, surroundings } = request;
  // A statement that changes data (`streams` is false) must not run twice, so it is never tried in memory first.
  if (!statement.streams) return false;
  const requested_bytes = Number(surroundings.settings.find(([name]) => name === 'max_result_bytes')?.[1] ?? 0);
  const bytes_max = requested_bytes > 0 ? Math.min(requested_bytes, BUFFERED_BYTES_MAX) : BUFFERED_BYTES_MAX;
  const settings: [string, string][] = [
    ...surroundings.settings,
    ['max_result_bytes', String(bytes_max)],
    ['result_overflow_mode', 'throw'],
  ];
  const read = abortWhenClosed({ ...request, surroundings: { ...surroundings, settings } }, response);
  try {
    const bytes = await engine.with(read, (connection) => connection.run(withoutFormat(statement), format));
    beginAnswer(response, { format, summary: {} });
    gzipped(request, response).end(bytes);
    return true;
  } catch (error) {
    if (asStatementError(error).code === TOO_MANY_ROWS_OR_BYTES) return false;
    throw error;
  }
}

const TOO_MANY_ROWS_OR_BYTES = 396;

/** Answers from a file: the whole result is on the disk before the first byte is sent, so a failure can still change the status. */
async function answerFromFile(request: Request, response: ServerResponse, options: ReadOptions): Promise<void> {
  const { engine, spool, format } = options;
  const path = spool.resultPath();
  try {
    const read = abortWhenClosed(request, response);
    const sql = readIntoFile(request.statement, { path, format });
    await engine.with(read, (connection) => connection.run(sql, format));
    beginAnswer(response, { format, summary: {} });
    if (!existsSync(path)) return void response.end();
    const file = await open(path);
    await rm(path);
    const { size } = await file.stat();
    if (!request.wants_gzip) response.setHeader('Content-Length', size);
    await sendAll(file.createReadStream(), request, response);
  } finally {
    await rm(path, { force: true });
  }
}

/** Maximum size of an answer that is in memory until the statement ends; a longer answer is written to the disk. */
const BUFFERED_BYTES_MAX = 4 * 1024 * 1024;

async function answerBuffered(request: Request, response: ServerResponse, options: PiecesOptions): Promise<void> {
  const { engine, spool, format, ending } = options;
  let [held, bytes]: [Uint8Array[], number] = [[], 0];
  let file: FileHandle | undefined;
  try {
    await engine.with(abortWhenClosed(request, response), async (connection) => {
      for await (const piece of connection.stream(withoutFormat(request.statement), format)) {
        held.push(piece);
        bytes += piece.length;
        if (bytes <= BUFFERED_BYTES_MAX) continue;
        file ??= await openUnnamed(spool.resultPath());
        await file.appendFile(Buffer.concat(held));
        [held, bytes] = [[], 0];
      }
    });
    held.push(Buffer.from(ending));
    beginAnswer(response, { format, summary: {} });
    if (!file) return void gzipped(request, response).end(Buffer.concat(held));
    await file.appendFile(Buffer.concat(held));
    const source = file.createReadStream({ start: 0 });
    file = undefined; // The stream closes the file when it ends.
    await sendAll(source, request, response);
  } finally {
    await file?.close();
  }
}

/** Opens a new file and removes its name at once, so that the file disappears with its descriptor. */
async function openUnnamed(path: string): Promise<FileHandle> {
  const file = await open(path, 'wx+', 0o600);
  await rm(path);
  return file;
}

/** Sends the answer while the statement runs, at the reader's pace. */
async function answerStream(request: Request, response: ServerResponse, options: PiecesOptions): Promise<void> {
  const { engine, format, ending } = options;
  const tag = randomBytes(8).toString('hex');
  let out: Writable | undefined;
  const begin = (): Writable => {
    response.setHeader('X-ClickHouse-Exception-Tag', tag);
    beginAnswer(response, { format, summary: {} });
    return gzipped(request, response);
  };
  try {
    await engine.with(abortWhenClosed(request, response), async (connection) => {
      for await (const piece of connection.stream(withoutFormat(request.statement), format)) {
        if (response.destroyed) return;
        out ??= begin();
        if (!out.write(piece)) await roomIn(out, response);
      }
    });
    (out ?? begin()).end(ending);
  } catch (error) {
    // If nothing has been sent, the status reports the failure. Otherwise the end of the body reports it, in the form that clients expect.
    if (!out) throw error;
    breakOff(out, response, exceptionAtTheEnd(exceptionText(asStatementError(error), engine.version), tag));
  }
}

/** Closes the connection without the end mark of a complete body, so that no client takes the rows so far for all rows. */
function breakOff(out: Writable, response: ServerResponse, error_text: string): void {
  const hangUp = () => response.write('', () => response.socket?.destroySoon());
  out.write(error_text, () => (out instanceof Gzip ? out.flush(hangUp) : hangUp()));
}

/** Waits until the reader has taken the written data, or has disconnected. */
function roomIn(out: Writable, response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      out.off('drain', done);
      response.off('close', done);
      resolve();
    };
    out.on('drain', done);
    response.on('close', done);
    if (response.destroyed) done();
  });
}

/** Aborts a read when its caller disconnects. */
function abortWhenClosed({ surroundings }: Request, response: ServerResponse): Surroundings {
  const closed = new AbortController();
  response.on('close', () => closed.abort());
  if (response.destroyed) closed.abort();
  return { ...surroundings, signal: closed.signal };
}

function beginAnswer(
  response: ServerResponse,
  { format, summary: known }: { format: string; summary: Record<string, number> },
) {
  response.statusCode = 200;
  response.setHeader('Content-Type', contentType(format));
  response.setHeader('X-ClickHouse-Format', format);
  response.setHeader('X-ClickHouse-Summary', summary(known));
}

function contentType(format: string): string {
  if (/EachRow/.test(format)) return 'application/x-ndjson; charset=UTF-8';
  if (/^JSON/.test(format)) return 'application/json; charset=UTF-8';
  if (/^(TSV|TabSeparated)/.test(format)) return 'text/tab-separated-values; charset=UTF-8';
  if (/^CSV/.test(format)) return 'text/csv; charset=UTF-8';
  return 'application/octet-stream';
}

async function sendAll(source: Readable, request: Request, response: ServerResponse): Promise<void> {
  if (!request.wants_gzip) return pipeline(source, response);
  response.setHeader('Content-Encoding', 'gzip');
  return pipeline(source, createGzip({ level: 1 }), response);
}

function gzipped(request: Request, response: ServerResponse): Writable {
  if (!request.wants_gzip) return response;
  response.setHeader('Content-Encoding', 'gzip');
  const gzip = createGzip({ level: 1 });
  gzip.pipe(response);
  return gzip;
}

/** Answers a failure with the status, the header and the text of a server. */
export function answerFailure(error: unknown, response: ServerResponse, version: string): void {
  if (response.headersSent || response.destroyed) return void response.destroy();
  const failure = asStatementError(error);
  for (const name of ['Content-Encoding', 'Content-Length']) response.removeHeader(name);
  response.statusCode = STATUS_BY_CODE.get(failure.code) ?? 500;
  response.setHeader('X-ClickHouse-Exception-Code', failure.code);
  response.setHeader('Content-Type', 'text/plain; charset=UTF-8');
  response.end(exceptionText(failure, version));
}

function asStatementError(error: unknown): StatementError {
  if (error instanceof StatementError) return error;
  const { message, code } = error as NodeJS.ErrnoException;
  if (code === 'ENOSPC') return new StatementError(243, 'NOT_ENOUGH_SPACE', `No space for the data: ${message}`);
  if (code?.startsWith('Z_') || code === 'ERR_STREAM_PREMATURE_CLOSE') {
    return new StatementError(354, 'ZLIB_INFLATE_FAILED', `The body could not be read: ${message}`);
  }
  return new StatementError(1001, 'STD_EXCEPTION', message);
}

function exceptionText({ code, type, message }: StatementError, version: string): string {
  return `Code: ${code}. DB::Exception: ${message} (${type}) (version ${version} (official build))\n`;
}

function exceptionAtTheEnd(text: string, tag: string): string {
  return `\r\n__exception__\r\n${tag}\r\n${text}${Buffer.byteLength(text)} ${tag}\r\n__exception__\r\n`;
}

/** HTTP statuses of a server's error codes; all others are 500. */
const STATUS_BY_CODE = new Map<number, number>([
  ...[6, 26, 27, 32, 36, 38, 41, 42, 43, 44, 53, 62, 69, 70, 72, 115, 117, 131, 321, 354, 386, 456, 457].map(
    (code): [number, number] => [code, 400],
  ),
  ...[192, 193, 194, 497, 516, 164].map((code): [number, number] => [code, 403]),
  ...[16, 46, 47, 50, 51, 60, 78, 81].map((code): [number, number] => [code, 404]),
  [159, 408],
  [307, 413],
  [48, 501],
  [1, 501],
  [202, 503],
  [236, 503],
]);
