/**
 * The cookie of a browser session, and the proof that a request with it comes from a page of this service
 * (docs/decisions/0035-browser-sessions.md). Over https the name begins with `__Host-`: a browser then takes the cookie from this host over
 * https alone.
 */
import type { Request, Response } from 'express';
import type { Config } from '../../config.ts';
import { COOKIE_SECONDS } from '../../core/foundation/access/session.ts';
import { FarthingError, invalid } from '../../core/foundation/error.ts';

type PublicAddress = Pick<Config, 'PUBLIC_URL'>;

export const PLAIN_NAME = 'farthing';
const HOST_NAME = '__Host-farthing';
/** A form cannot send this header, and another origin sends it only after a preflight. */
const CONSOLE_HEADER = 'X-Farthing-Console';
const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS']);

/** Token in the cookie of the request; undefined without one. */
export function readSessionToken(request: Request, address: PublicAddress): string | undefined {
  return readCookie(request.headers.cookie, nameCookie(request, address));
}

/** Token in either cookie. It authenticates nobody, because the request may not be of the address of this cookie. */
export function peekSessionToken({ headers: { cookie } }: Pick<Request, 'headers'>): string | undefined {
  return readCookie(cookie, HOST_NAME) ?? readCookie(cookie, PLAIN_NAME);
}

/** The published client sends an empty header with its key, which is no cookie. */
function readCookie(header: string | undefined, name: string): string | undefined {
  const pairs = (header ?? '').split(';').map((pair) => pair.trim());
  const found = pairs.find((pair) => pair.startsWith(`${name}=`));
  return found?.slice(name.length + 1) || undefined;
}

export function setSessionCookie(response: Response, token: string, address: PublicAddress): void {
  response.cookie(nameCookie(response.req, address), token, {
    ...describeCookie(response.req, address),
    maxAge: COOKIE_SECONDS * 1000,
  });
}

export function clearSessionCookie(response: Response, address: PublicAddress): void {
  response.clearCookie(nameCookie(response.req, address), describeCookie(response.req, address));
}

function nameCookie(request: Request, address: PublicAddress): string {
  return isSecure(request, address) ? HOST_NAME : PLAIN_NAME;
}

function describeCookie(request: Request, address: PublicAddress) {
  return { httpOnly: true, sameSite: 'strict', secure: isSecure(request, address), path: '/' } as const;
}

function isSecure({ protocol }: Request, { PUBLIC_URL }: PublicAddress): boolean {
  return protocol === 'https' || PUBLIC_URL?.startsWith('https:') === true;
}

/** Throws 403 if the request may change something and does not prove that it comes from a page of this service. */
export function checkConsoleRequest(request: Request, address: PublicAddress): void {
  if (SAFE_METHODS.has(request.method)) return;
  if (request.get(CONSOLE_HEADER) !== '1')
    throw refuse(CONSOLE_HEADER, `a request of a browser session needs the header ${CONSOLE_HEADER}: 1`);
  const site = request.get('sec-fetch-site');
  if (site !== undefined && site !== 'same-origin')
    throw refuse('Sec-Fetch-Site', 'a request of a browser session must come from a page of this service');
  const origin = request.get('origin');
  if (origin === undefined && site === undefined)
    throw refuse('Origin', 'a request of a browser session needs the header Sec-Fetch-Site or Origin');
  const own = listOrigins(request, address);
  if (origin !== undefined && !own.includes(origin))
    throw refuse(
      'Origin',
      `the page is of ${origin.slice(0, 200)}, the service of ${own[0]}: if both are one, set PUBLIC_URL`,
    );
}

function listOrigins({ protocol, host }: Request, { PUBLIC_URL }: PublicAddress): string[] {
  return [...(PUBLIC_URL === undefined ? [] : [new URL(PUBLIC_URL).origin]), `${protocol}://${host}`];
}

function refuse(field: string, why: string): FarthingError {
  return new FarthingError('permission_denied', why, { details: { field } });
}

/** Environment that the request names in its query, for addresses to which a browser adds no header: streams and downloads. */
export function findQueryEnvironment({ query }: Request): string | null {
  const named = query.environment_id;
  if (named === undefined) return null;
  if (typeof named !== 'string') throw invalid('environment_id', 'must be one id');
  return named.trim() || null;
}
