/**
 * Serves the console in a browser (docs/decisions/0035-browser-sessions.md). Every address without another owner is a page of it, because
 * its router reads the address in the browser. A program, which does not accept HTML, gets the answers of the API.
 */
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import express, { type Request, type RequestHandler, type Response, Router } from 'express';
import { canShowMetrics } from '../../process/process-door.ts';
import type { Services } from './services.ts';

/** Paths with another owner. */
const RESERVED = /^\/(?:v1|docs|webhooks|portal|assets|metrics|health|ready)(?:\/|$)/i;
/** Files with a hash of their content in their name, and the few files at the top of a build. */
const FILE = /^\/(?:assets\/[\w-]+(?:\.[\w-]+)*|[\w-]+\.(?:svg|png|ico|txt|webmanifest))$/;
const NONCE = /__NONCE__/g;
const NONCE_BYTES = 16;
const RETRY_SECONDS = 2;

type BuildPages = {
  readonly folder: string;
  /** index.html, with a placeholder for the nonce. */
  readonly template: string;
  readonly files: RequestHandler;
};

export function serveConsole({ console, config }: Pick<Services, 'console' | 'config'>): Router {
  const router = Router();
  if (console === undefined || config.CONSOLE === 'off') return router;
  let loaded: BuildPages | undefined;
  router.get(/.*/, (request, response, next) => {
    const isFile = FILE.test(request.path);
    if (!isFile && !wantsPage(request)) return next();
    if (!canShowMetrics(config.CONSOLE, request)) return next();
    const found = console.find();
    if (found.folder === undefined) {
      if (isFile || found.why === 'absent') return next();
      return sendWaitingPage(response, found.why);
    }
    if (loaded?.folder !== found.folder) loaded = loadBuild(found.folder);
    if (isFile) return sendFile(loaded, request, response, next);
    sendPage(response, loaded.template.replace(NONCE, setPageHeaders(response)));
  });
  return router;
}

/** A browser names HTML before anything else; a program accepts everything, or JSON. */
function wantsPage(request: Request): boolean {
  if (RESERVED.test(request.path)) return false;
  request.res!.vary('Accept');
  return request.accepts(['json', 'html']) === 'html';
}

function loadBuild(folder: string): BuildPages {
  return {
    folder,
    template: readFileSync(join(folder, 'index.html'), 'utf8'),
    // Without ranges: a part of a compressed file is not a part of the file.
    files: express.static(folder, { acceptRanges: false, index: false, redirect: false, cacheControl: false }),
  };
}

/** The smallest first. */
const ENCODINGS = [
  { encoding: 'br', suffix: '.br' },
  { encoding: 'gzip', suffix: '.gz' },
];

function sendFile({ folder, files }: BuildPages, request: Request, response: Response, next: () => void): void {
  const { path } = request;
  if (!existsSync(join(folder, path))) return next();
  const isHashed = path.startsWith('/assets/');
  response.set('Cache-Control', isHashed ? 'public, max-age=31536000, immutable' : 'public, max-age=3600');
  response.set('Cross-Origin-Resource-Policy', 'same-origin');
  const compressed = ENCODINGS.filter(({ suffix }) => existsSync(join(folder, path + suffix)));
  if (compressed.length > 0) response.vary('Accept-Encoding');
  const best = compressed.find(({ encoding }) => request.acceptsEncodings(encoding));
  if (best) {
    response.type(extname(path)).set('Content-Encoding', best.encoding);
    request.url = path + best.suffix;
  }
  files(request, response, next);
}

/** Sets the headers of a page and returns its nonce, which is new for each answer. */
function setPageHeaders(response: Response, hasInlineScript = false): string {
  const nonce = randomBytes(NONCE_BYTES).toString('base64');
  const policy = [
    "default-src 'none'",
    `script-src 'self'${hasInlineScript ? ` 'nonce-${nonce}'` : ''}`,
    // The component library adds style elements with the nonce.
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self' data: blob:",
    "font-src 'self'",
    "connect-src 'self'",
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ];
  response.set({
    'Content-Security-Policy': policy.join('; '),
    'Cache-Control': 'no-store',
    'Cross-Origin-Resource-Policy': 'same-origin',
  });
  return nonce;
}

function sendPage(response: Response, html: string): void {
  response.type('html').send(html);
}

const WAITING = {
  building: 'The console is being built. This page opens it in a few seconds.',
  failed: 'The console could not be built: the log of the service has the reason. The API works.',
} as const;

function sendWaitingPage(response: Response, why: keyof typeof WAITING): void {
  const nonce = setPageHeaders(response, true);
  // A refresh of an address with a fragment, such as the one-time link, stays in the document, so a script reloads it.
  const script = `<script nonce="${nonce}">setTimeout(() => location.reload(), ${RETRY_SECONDS * 1000})</script>`;
  const refresh = `<noscript><meta http-equiv="refresh" content="${RETRY_SECONDS}"></noscript>`;
  const reload = why === 'building' ? `${script}${refresh}` : '';
  if (why === 'building') response.set('Retry-After', String(RETRY_SECONDS));
  response.status(503);
  sendPage(
    response,
    `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    ${reload}
    <title>Farthing</title>
    <style nonce="${nonce}">body { font: 16px/1.5 system-ui, sans-serif; margin: 20vh auto; max-width: 34em; padding: 0 1em }</style>
  </head>
  <body>
    <p>${WAITING[why]}</p>
  </body>
</html>
`,
  );
}
