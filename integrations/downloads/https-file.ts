/**
 * A file behind an https URL that somebody has named. No private, loopback or link-local address is connected to, which is checked for
 * the address itself when the connection is made, because a name may lead elsewhere by then; each redirect is a request of its own
 * that is checked as the first. What the file may cost is limited: its length, how long nothing comes, how long it takes.
 */
import http from 'node:http';
import https from 'node:https';
import { FarthingError, invalid, unavailable } from '../../core/error.ts';
import { checkFileUrl } from '../../core/import/file-url.ts';
import { guardedAgent, isRefusal } from '../guarded-agent.ts';
import { type NameServers, resolverLookup } from '../lookup.ts';

export type DownloadOptions = {
  readonly bytes_max: number;
  /** Private addresses that are connected to all the same, and of which http is taken. */
  readonly allowed_addresses: readonly string[];
  readonly silence_ms?: number;
  readonly name_servers?: NameServers;
  readonly signal: AbortSignal;
};

const REDIRECTS_MAX = 5;
const SILENCE_MS = 30_000;
const FIELD = 'file_url';

/** The bytes, as they come. What will not pass is thrown as `validation_error`, what may pass as `service_unavailable`. */
export async function* downloadFile(url: string, options: DownloadOptions): AsyncGenerator<Buffer> {
  const response = await answered(url, options);
  let bytes = 0;
  try {
    for await (const piece of response as AsyncIterable<Buffer>) {
      bytes += piece.length;
      if (bytes > options.bytes_max) throw tooLong(options);
      yield piece;
    }
  } catch (error) {
    throw asFault(error);
  } finally {
    response.destroy();
  }
}

const tooLong = ({ bytes_max }: DownloadOptions) => invalid(FIELD, `the file is longer than ${bytes_max} bytes`);

async function answered(first: string, options: DownloadOptions): Promise<http.IncomingMessage> {
  let text = first;
  for (let redirects = 0; redirects <= REDIRECTS_MAX; redirects++) {
    const url = checkFileUrl(text, options.allowed_addresses);
    const response = await asked(url, options).catch((error: unknown) => {
      throw asFault(error);
    });
    const { statusCode: status = 0, headers } = response;
    if (status === 200) {
      if (Number(headers['content-length'] ?? 0) <= options.bytes_max) return response;
      response.destroy();
      throw tooLong(options);
    }
    response.destroy();
    const isRedirect = [301, 302, 303, 307, 308].includes(status);
    if (!isRedirect || headers.location === undefined) throw refusedBy(status);
    text = new URL(headers.location, url).href;
  }
  throw invalid(FIELD, `leads on more than ${REDIRECTS_MAX} times`);
}

function refusedBy(status: number): FarthingError {
  const mayPass = status >= 500 || status === 408 || status === 429;
  return mayPass ? unavailable(`the file (${status} was answered)`) : invalid(FIELD, `${status} was answered`);
}

function asked(url: URL, options: DownloadOptions): Promise<http.IncomingMessage> {
  const { allowed_addresses, silence_ms = SILENCE_MS, name_servers, signal } = options;
  const lookup = resolverLookup(name_servers);
  return new Promise((resolve, reject) => {
    const request = (url.protocol === 'https:' ? https : http).request(url, {
      agent: guardedAgent(url.protocol, { allowed_addresses, lookup }),
      headers: {
        accept: 'text/csv, application/json, */*',
        'accept-encoding': 'identity',
        'user-agent': 'Farthing-Imports',
      },
      timeout: silence_ms,
      signal,
    });
    request.on('timeout', () => request.destroy(new Error(SILENT)));
    request.on('response', resolve);
    request.on('error', reject);
    request.on('close', () => reject(new Error('the connection was closed without an answer')));
    request.end();
  });
}

const SILENT = 'nothing came for too long';

/** Who named the URL learns nothing of what is behind private addresses: each of them is refused in the same words. */
function asFault(error: unknown): unknown {
  if (error instanceof FarthingError || !(error instanceof Error)) return error;
  if (error.name === 'AbortError' || error.name === 'TimeoutError') return error;
  if (isRefusal(error)) return invalid(FIELD, 'leads to an address that is not public');
  if (['ENOTFOUND', 'ENODATA'].includes((error as NodeJS.ErrnoException).code ?? ''))
    return invalid(FIELD, 'names a host that is not there');
  return unavailable('the file', error);
}
