/**
 * Reads request bodies as bytes (the limit applies to inflated bytes), and parses them if the route takes JSON. An empty body is no body,
 * whatever its content type: the published client sends such requests.
 */

import { isUtf8 } from 'node:buffer';
import express, { type RequestHandler } from 'express';
import { FarthingError } from '../../core/foundation/error.ts';
import { DEPTH_MAX, isDeeperThan } from '../../core/foundation/json/depth.ts';
import { parseJson } from '../../core/foundation/json/parse.ts';

const MIB = 1024 * 1024;
export const BODY_LIMIT = 1 * MIB;
export const RAW_BODY_LIMIT = 32 * MIB;

/**
 * Reads the body as bytes. `request.body` is then a Buffer, or undefined without a body. With `inflate: false` a compressed body is
 * refused.
 */
export function readBytes(limit: number, { inflate = true }: { inflate?: boolean } = {}): RequestHandler {
  return express.raw({ type: () => true, limit, inflate });
}

/** The JSON value of the body; undefined without one. */
export function parseJsonBody(bytes: unknown, contentType: string | undefined): unknown {
  if (!Buffer.isBuffer(bytes)) return undefined;
  checkJsonBytes(bytes, contentType);
  const text = bytes.toString('utf8').replace(/^\uFEFF/, '');
  if (text.trim() === '') return undefined;
  const value = parse(text);
  if (isDeeperThan(value, DEPTH_MAX)) throw bodyError(`the body is nested deeper than ${DEPTH_MAX} levels`);
  return value;
}

/** Checks that the bytes are JSON: bytes in another format or encoding would be stored unchanged and later misread. */
export function checkJsonBytes(bytes: Buffer, contentType: string | undefined): void {
  if (bytes.length === 0) return;
  if (!isJson(contentType))
    throw bodyError(`the body must be JSON: send Content-Type: application/json, not ${contentType ?? 'none'}`);
  checkCharset(contentType);
  if (!isUtf8(bytes)) throw bodyError('the body is not UTF-8');
}

/** Checks the content type only. The content is validated when it is read, because it may be 32 MiB. */
export function checkFileType(bytes: Buffer, contentType: string | undefined, kinds: readonly string[]): void {
  if (bytes.length === 0) return;
  if (!kinds.includes(mediaType(contentType)))
    throw bodyError(`the body must be a file: send Content-Type: ${kinds.join(' or ')}, not ${contentType ?? 'none'}`);
  checkCharset(contentType);
}

function isJson(contentType: string | undefined): boolean {
  const type = mediaType(contentType);
  return type === 'application/json' || type.endsWith('+json');
}

function mediaType(contentType: string | undefined): string {
  return contentType?.split(';')[0]?.trim().toLowerCase() ?? '';
}

const CHARSETS = ['utf-8', 'utf8', 'us-ascii'];

/** Checks the charset. A body in another charset would be misread, even if its bytes happen to be valid UTF-8. */
function checkCharset(contentType: string | undefined): void {
  const charset = /;\s*charset\s*=\s*"?([^";\s]*)/i.exec(contentType ?? '')?.[1];
  if (charset === undefined || CHARSETS.includes(charset.toLowerCase())) return;
  throw bodyError(`the body must be UTF-8: send it as that, not as ${charset}`);
}

function parse(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    // The parser's message quotes the body, which may contain secrets.
    throw bodyError('the body is not valid JSON');
  }
}

const bodyError = (why: string) => new FarthingError('validation_error', why);
