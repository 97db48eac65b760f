/**
 * Downloads a file from an https URL that a user named. It never connects to a private, loopback or link-local address;
 * the check runs at the connection, because a name may resolve differently by then. Each redirect is a new request with
 * all checks. Length, pauses, pace and total time are limited.
 */
import http from 'node:http';
import https from 'node:https';
import { FarthingError, invalid, unavailable } from '../../core/foundation/error.ts';
import { HOUR_MS, MINUTE_MS } from '../../core/foundation/time/durations.ts';
import { checkFileUrl } from '../../core/platform/import/file-url.ts';
import { createGuardedAgent, isRefusal } from '../guarded-agent.ts';
import { createResolverLookup, type NameServers } from '../lookup.ts';

type DownloadOptions = {
  readonly bytes_max: number;
  /** Private addresses to which a download may connect, also over http. */
  readonly allowed_addresses: readonly string[];
  readonly silence_ms?: number;
  readonly pace?: Partial<Pace>;
  readonly name_servers?: NameServers;
  readonly signal: AbortSignal;
};

/** Minimum pace of a download (docs/rules/imports.md, "Files behind a URL"). */
type Pace = {
  readonly least_bytes_per_second: number;
  /** Maximum delay relative to the minimum pace. Also the time limit for the start of the answer. */
  readonly patience_ms: number;
  readonly total_ms: number;
};
const PACE: Pace = { least_bytes_per_second: 65_536, patience_ms: MINUTE_MS, total_ms: HOUR_MS };

const REDIRECTS_MAX = 5;
const SILENCE_MS = 30_000;
const FIELD = 'file_url';

/**
 * Yields the bytes as they arrive. A permanent failure throws `validation_error`, a temporary one
 * `service_unavailable`.
 */
export async function* downloadFile(url: string, options: DownloadOptions): AsyncGenerator<Buffer> {
  const pace = { ...PACE, ...options.pace };
  const total = AbortSignal.timeout(pace.total_ms);
  const bounded = { ...options, pace, signal: AbortSignal.any([options.signal, total]) };
  try {
    yield* readPaced(await followRedirects(url, bounded), bounded);
  } catch (error) {
    // The error of an aborted connection does not contain the reason of the abort, so the reason is thrown.
    options.signal.throwIfAborted();
    throw total.aborted ? buildTimeoutError(pace) : error;
  }
}

type PacedOptions = Omit<DownloadOptions, 'pace'> & { readonly pace: Pace };

/**
 * Yields the bytes and aborts a slow download. Only time spent waiting for the sender counts, not the time that the
 * consumer takes.
 */
async function* readPaced(response: http.IncomingMessage, options: PacedOptions): AsyncGenerator<Buffer> {
  const { least_bytes_per_second, patience_ms } = options.pace;
  const pieces = (response as AsyncIterable<Buffer>)[Symbol.asyncIterator]();
  let [bytes, behind_ms] = [0, 0];
  try {
    for (;;) {
      const requested_at = performance.now();
      const { done, value: piece } = await pieces.next();
      if (done) return;
      bytes += piece.length;
      if (bytes > options.bytes_max) throw buildTooLongError(options);
      const waited_ms = performance.now() - requested_at;
      behind_ms = Math.max(0, behind_ms + waited_ms - (piece.length / least_bytes_per_second) * 1_000);
      if (behind_ms > patience_ms) throw buildTooSlowError(options.pace);
      yield piece;
    }
  } catch (error) {
    throw toDownloadError(error);
  } finally {
    response.destroy();
  }
}

const buildTooSlowError = ({ least_bytes_per_second, patience_ms }: Pace) =>
  unavailable(
    `the file (it came more slowly than ${least_bytes_per_second} bytes a second for ${patience_ms / 1_000} seconds)`,
  );
const buildTimeoutError = ({ total_ms }: Pace) =>
  invalid(FIELD, `the file took longer than ${total_ms / MINUTE_MS} minutes`);
const buildTooLongError = ({ bytes_max }: Pick<DownloadOptions, 'bytes_max'>) =>
  invalid(FIELD, `the file is longer than ${bytes_max} bytes`);

async function followRedirects(first: string, options: PacedOptions): Promise<http.IncomingMessage> {
  let text = first;
  for (let redirects = 0; redirects <= REDIRECTS_MAX; redirects++) {
    const url = checkFileUrl(text, options.allowed_addresses);
    const response = await requestFile(url, options).catch((error: unknown) => {
      throw toDownloadError(error);
    });
    const { statusCode: status = 0, headers } = response;
    if (status === 200) {
      if (Number(headers['content-length'] ?? 0) <= options.bytes_max) return response;
      response.destroy();
      throw buildTooLongError(options);
    }
    response.destroy();
    const isRedirect = [301, 302, 303, 307, 308].includes(status);
    if (!isRedirect || headers.location === undefined) throw buildStatusError(status);
    text = new URL(headers.location, url).href;
  }
  throw invalid(FIELD, `leads on more than ${REDIRECTS_MAX} times`);
}

function buildStatusError(status: number): FarthingError {
  const mayPass = status >= 500 || status === 408 || status === 429;
  return mayPass ? unavailable(`the file (${status} was answered)`) : invalid(FIELD, `${status} was answered`);
}

function requestFile(url: URL, options: PacedOptions): Promise<http.IncomingMessage> {
  const { allowed_addresses, silence_ms = SILENCE_MS, name_servers, signal, pace } = options;
  const lookup = createResolverLookup(name_servers);
  return new Promise((resolve, reject) => {
    const request = (url.protocol === 'https:' ? https : http).request(url, {
      agent: createGuardedAgent(url.protocol, { allowed_addresses, lookup }),
      headers: {
        accept: 'text/csv, application/json, */*',
        'accept-encoding': 'identity',
        'user-agent': 'Farthing-Imports',
      },
      timeout: silence_ms,
      signal,
    });
    // Ends a request whose sender sends headers byte by byte, which never triggers the timeout for silence.
    const patience = setTimeout(() => request.destroy(new Error(SILENT)), pace.patience_ms);
    request.on('timeout', () => request.destroy(new Error(SILENT)));
    request.on('response', (response) => {
      clearTimeout(patience);
      resolve(response);
    });
    request.on('error', reject);
    request.on('close', () => {
      clearTimeout(patience);
      reject(new Error('the connection was closed without an answer'));
    });
    request.end();
  });
}

const SILENT = 'nothing came for too long';

const NOT_PUBLIC = 'names a host that is not there, or that is at an address that is not public';

/**
 * All refusals of an address have one message, because the author of the URL must not learn which names resolve to
 * private addresses.
 */
function toDownloadError(error: unknown): unknown {
  if (error instanceof FarthingError || !(error instanceof Error)) return error;
  if (error.name === 'AbortError' || error.name === 'TimeoutError') return error;
  const isNowhere = ['ENOTFOUND', 'ENODATA'].includes((error as NodeJS.ErrnoException).code ?? '');
  if (isNowhere || isRefusal(error)) return invalid(FIELD, NOT_PUBLIC);
  return unavailable('the file', error);
}
