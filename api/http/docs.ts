/**
 * The documentation page at /docs: a list of all operations, made here, and Swagger UI from our own node_modules for one tag at a time. Its
 * own content policy allows what it needs from this host and nothing from any other.
 */
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import express, { Router } from 'express';
import helmet from 'helmet';
import { Marked } from 'marked';
import { groupBy } from '../../core/foundation/group-by.ts';
import { VERSION } from '../../process/version.ts';
import { docPageRoutes, escapeHtml } from './doc-pages.ts';
import { getOnly } from './errors.ts';
import { exampleFile } from './examples.ts';
import { DESCRIPTION, listTags, openApiDocument } from './openapi.ts';
import type { Route } from './route.ts';

/** Without ranges: a part of a file must not be compressed as if it were the whole. */
const WHOLE = { acceptRanges: false } as const;
const OWN_FILES = { ...WHOLE, root: join(import.meta.dirname, 'docs-page') };
const assets = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'));
const SERVED = /^\/(swagger-ui\.css|swagger-ui-bundle\.js|favicon-(16x16|32x32)\.png)$/;

const POLICY = helmet.contentSecurityPolicy({
  useDefaults: false,
  directives: {
    defaultSrc: ["'none'"],
    scriptSrc: ["'self'"],
    // The page sets style attributes while rendering, and inlines its icons.
    styleSrc: ["'self'", "'unsafe-inline'"],
    imgSrc: ["'self'", 'data:'],
    connectSrc: ["'self'"],
    baseUri: ["'none'"],
    formAction: ["'none'"],
    frameAncestors: ["'none'"],
  },
});

/** Routes below /docs, for the operations of `routes`. */
export function docsRoutes(routes: readonly Route[]): Router {
  const router = Router();
  router.use(docPageRoutes());
  router.use(POLICY);
  let page: string | undefined;
  router.get('/', (request, response) => {
    // Relative addresses below need the slash.
    if (!request.originalUrl.split('?')[0]!.endsWith('/')) return response.redirect(301, `${request.baseUrl}/`);
    page ??= renderPage(routes);
    response.type('html').send(page);
  });
  const byFile = groupBy(routes, ({ tag }) => exampleFile(tag));
  const documents = new Map<string, unknown>();
  router.get('/operations/:file', ({ params: { file } }, response, next) => {
    const listed = byFile.get(file);
    if (listed === undefined) return next();
    if (!documents.has(file)) documents.set(file, openApiDocument(listed));
    response.json(documents.get(file));
  });
  router.get('/start.js', (_request, response) => response.type('js').sendFile('start.mjs', OWN_FILES));
  router.get('/page.css', (_request, response) => response.sendFile('page.css', OWN_FILES));
  const files = express.static(assets, { ...WHOLE, index: false, maxAge: '1d' });
  router.get(/.*/, (request, response, next) => (SERVED.test(request.path) ? files(request, response, next) : next()));
  router.all(['/', '/start.js', '/page.css'], getOnly);
  return router;
}

function renderPage(routes: readonly Route[]): string {
  const byTag = groupBy(routes, ({ tag }) => tag);
  const tags = listTags(routes);
  const marked = new Marked();
  const rows = tags.map(({ name, description = '' }) => {
    const text = marked.parseInline(description, { async: false });
    return `<tr><td><a href="#/${escapeHtml(name)}">${escapeHtml(name)}</a></td><td>${text}</td></tr>`;
  });
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Farthing API</title>
    <link rel="icon" type="image/png" href="favicon-32x32.png">
    <link rel="stylesheet" href="swagger-ui.css">
    <link rel="stylesheet" href="page.css">
  </head>
  <body>
    <nav>
      <p><a href="#">Farthing API</a></p>
      <input id="filter" type="search" placeholder="Filter operations" aria-label="Filter operations">
      ${tags.map(({ name }) => renderTag(name, byTag.get(name)!)).join('\n      ')}
    </nav>
    <main>
      <div id="introduction">
        <h1>Farthing API</h1>
        <p>Version ${escapeHtml(VERSION)}. ${marked.parseInline(DESCRIPTION, { async: false })}</p>
        <p>All operations for programs: <a href="../v1/openapi.json">OpenAPI document</a>.</p>
        <table>${rows.join('\n')}</table>
      </div>
      <div id="operations" hidden></div>
    </main>
    <script type="module" src="start.js"></script>
  </body>
</html>
`;
}

function renderTag(tag: string, routes: readonly Route[]): string {
  const links = routes.map(
    ({ method, operation_id, summary }) =>
      `<a href="#/${escapeHtml(tag)}/${operation_id}"><b class="${method}">${method}</b> ${escapeHtml(summary)}</a>`,
  );
  const data = `data-tag="${escapeHtml(tag)}" data-document="operations/${exampleFile(tag)}"`;
  return `<details ${data}><summary>${escapeHtml(tag)}</summary>${links.join('')}</details>`;
}
