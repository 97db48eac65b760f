/**
 * Request bodies: read as bytes (inflated, the limit counts inflated bytes), then taken as JSON where the route wants
 * JSON. A body of no bytes is no body, whatever its content type says: the published client sends such.
 */

import { isUtf8 } from 'node:buffer';
import express, { type RequestHandler } from 'express';
import { FarthingError } from '../../core/error.ts';
import { DEPTH_MAX, isDeeperThan } from '../../core/json/depth.ts';
import { parseJson } from '../../core/json/parse.ts';

const MIB = 1024 * 1024;
export const BODY_LIMIT = 1 * MIB;
export const RAW_BODY_LIMIT = 32 * MIB;

/** `request.body` is a Buffer, or undefined without a body. */
export function readBytes(limit: number): RequestHandler {
  return express.raw({ type: () => true, limit });
}

/** The JSON value of the body; undefined without one. */
export function jsonOf(bytes: unknown, contentType: string | undefined): unknown {
  if (!Buffer.isBuffer(bytes)) return undefined;
  checkJsonBytes(bytes, contentType);
  const text = bytes.toString('utf8').replace(/^\uFEFF/, '');
  if (text.trim() === '') return undefined;
  const value = parse(text);
  if (isDeeperThan(value, DEPTH_MAX)) throw refused(`the body is nested deeper than ${DEPTH_MAX} levels`);
  return value;
}

/** Other bytes would be kept as they came, and read as something else. */
export function checkJsonBytes(bytes: Buffer, contentType: string | undefined): void {
  if (bytes.length === 0) return;
  if (!isJson(contentType))
    throw refused(`the body must be JSON: send Content-Type: application/json, not ${contentType ?? 'none'}`);
  if (!isUtf8(bytes)) throw refused('the body is not UTF-8');
}

export function isJson(contentType: string | undefined): boolean {
  const type = contentType?.split(';')[0]?.trim().toLowerCase() ?? '';
  return type === 'application/json' || type.endsWith('+json');
}

function parse(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    // The parser's own words quote the body, which may hold what must not be repeated.
    throw refused('the body is not valid JSON');
  }
}

const refused = (why: string) => new FarthingError('validation_error', why);
