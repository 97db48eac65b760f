/**
 * The process that owns a ClickHouse directory: the engine, with ClickHouse's HTTP interface on loopback in front of it. `startClickHouse`
 * starts it and writes the options to the first line of its input. The input ends when the parent ends, and the process then ends, too.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createInterface } from 'node:readline';
import { StatementError } from '../../clickhouse/tokens.ts';
import { type AnswerContext, answerFailure, answerRequest } from './answer.ts';
import { type EngineOptions, openEngine } from './engine.ts';
import { type Credentials, isAuthorised, readRequest } from './request.ts';
import { openSpool } from './spool.ts';

export interface EmbeddedClickHouseOptions extends EngineOptions, Credentials {}

/** Time that running statements get after the parent has ended. */
const LAST_STATEMENTS_MS = 5_000;

createInterface({ input: process.stdin }).once('line', (line) => {
  try {
    serve(JSON.parse(line) as EmbeddedClickHouseOptions);
  } catch (error) {
    process.stdout.write(`failed ${(error as Error).message}\n`, () => process.exit(1));
  }
});
process.stdout.on('error', () => {}); // The reader has gone; the end of the input ends the process.
process.stderr.on('error', () => {});

function serve(options: EmbeddedClickHouseOptions): void {
  const engine = openEngine(options);
  const served: AnswerContext = { engine, spool: openSpool(options.dir) };
  const server = createServer(
    { maxHeaderSize: 4 * 1024 * 1024, keepAliveTimeout: 10_000, requestTimeout: 0 },
    (request, response) => {
      handle(request, response, { ...served, options }).catch((error) =>
        answerFailure(error, response, engine.version),
      );
    },
  );
  server.listen(0, '127.0.0.1', () => {
    const { port } = server.address() as { port: number };
    process.stdout.write(`ready ${port}\n`);
  });
  const finish = callOnce(() => {
    server.close();
    // Statements that run longer are killed with the process; the next start recovers the engine as after a crash.
    setTimeout(() => process.kill(process.pid, 'SIGKILL'), LAST_STATEMENTS_MS).unref();
    void engine.close().then(() => {
      served.spool.close();
      process.exit(0);
    });
  });
  process.stdin.on('end', finish);
  process.on('SIGTERM', finish);
  process.on('SIGINT', finish);
}

function callOnce(work: () => void): () => void {
  let done = false;
  return () => {
    if (!done) work();
    done = true;
  };
}

interface HandleOptions extends AnswerContext {
  options: EmbeddedClickHouseOptions;
}

async function handle(request: IncomingMessage, response: ServerResponse, served: HandleOptions): Promise<void> {
  const path = new URL(request.url ?? '/', 'http://localhost').pathname;
  if (path === '/ping') return void response.end('Ok.\n');
  if (path !== '/') {
    response.statusCode = 404;
    return void response.end('There is no handle for this path. Use / or /ping.\n');
  }
  if (!isAuthorised(request, served.options)) {
    throw new StatementError(516, 'AUTHENTICATION_FAILED', 'Authentication failed: password is incorrect');
  }
  await answerRequest(await readRequest(request), response, served);
}
