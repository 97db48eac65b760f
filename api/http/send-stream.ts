/**
 * Sends a file while it is being produced. There is no Content-Length, and a failure on the way breaks the connection, so a file that ends
 * in order is complete.
 */
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type { Context } from './route.ts';

type SentFile = { readonly type: string; readonly name: string; readonly zips: boolean };

export async function sendStream(bytes: Readable, { type, name, zips }: SentFile, context: Context): Promise<void> {
  const { response, log } = context;
  response.status(200).type(type).vary('Accept-Encoding');
  response.set('Content-Disposition', `attachment; filename="${name}"`);
  if (zips) response.set('Content-Encoding', 'gzip');
  try {
    await (zips ? pipeline(bytes, createGzip(), response) : pipeline(bytes, response));
  } catch (error) {
    if (!response.headersSent) throw error;
    response.destroy();
    const left = (error as { code?: string }).code === 'ERR_STREAM_PREMATURE_CLOSE';
    if (left) log.info('the caller left before the end of the export');
    else log.error({ err: error }, 'an export failed on the way');
  }
}

export function wantsGzip({ request }: Context): boolean {
  return request.acceptsEncodings('gzip') === 'gzip';
}

/**
 * Every browser sends a user agent that begins with Mozilla/, and no API client does. CSV for a browser gets a byte order mark, because a
 * person may open it in a spreadsheet.
 */
export function isBrowser({ request }: Context): boolean {
  return /^Mozilla\//.test(request.get('user-agent') ?? '');
}
