/**
 * Serves docs/rules, docs/integrations and the pages that they link to as HTML below /docs, for readers of the API documentation. Links
 * between the pages are served unchanged.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { Router } from 'express';
import helmet from 'helmet';
import { Marked, type Tokens } from 'marked';
import { getOnly } from './errors.ts';

const DOCS = join(import.meta.dirname, '../../docs');
const INDEX = 'rules/README.md';

/** Published pages, relative to docs/. Pages for operators and developers stay in the repository. */
const PAGES: ReadonlySet<string> = new Set([
  ...listPages('rules'),
  ...listPages('integrations'),
  'permissions.md',
  'reliability.md',
]);

function listPages(folder: string): string[] {
  return readdirSync(join(DOCS, folder))
    .filter((file) => file.endsWith('.md'))
    .map((file) => `${folder}/${file}`);
}

const POLICY = helmet.contentSecurityPolicy({
  useDefaults: false,
  directives: {
    defaultSrc: ["'none'"],
    styleSrc: ["'self'"],
    imgSrc: ["'self'"],
    baseUri: ["'none'"],
    formAction: ["'none'"],
    frameAncestors: ["'none'"],
  },
});

export function docPageRoutes(): Router {
  const router = Router();
  router.get('/rules', ({ originalUrl, baseUrl }, response, next) =>
    originalUrl.split('?')[0]!.endsWith('/') ? next() : response.redirect(301, `${baseUrl}/rules/`),
  );
  const shown = new Map<string, string>();
  const show = (page: string) => shown.get(page) ?? shown.set(page, renderPage(page)).get(page)!;
  router.get('/rules', POLICY, (_request, response) => void response.type('html').send(show(INDEX)));
  for (const page of PAGES)
    router.get(`/${page}`, POLICY, (_request, response) => void response.type('html').send(show(page)));
  router.get('/pages.css', (_request, response) => void response.type('css').send(STYLE));
  router.all(['/rules', '/pages.css', ...[...PAGES].map((page) => `/${page}`)], getOnly);
  return router;
}

function renderPage(page: string): string {
  const text = readFileSync(join(DOCS, page), 'utf8');
  const title = /^# (.+)$/m.exec(text)?.[1] ?? page;
  const up = '../'.repeat(page.split('/').length - 1);
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>${escapeHtml(title)} · Farthing</title>
    <link rel="icon" type="image/png" href="${up}favicon-32x32.png">
    <link rel="stylesheet" href="${up}pages.css">
  </head>
  <body>
    <nav><a href="${up}rules/">The rules</a> <a href="${up || './'}">The API</a></nav>
    <main>${markedFor(page).parse(text, { async: false })}</main>
  </body>
</html>
`;
}

function markedFor(page: string): Marked {
  return new Marked({
    renderer: {
      // A rule is cited by its heading, so the heading can be linked to.
      heading({ tokens, depth, text }: Tokens.Heading) {
        return `<h${depth} id="${toAnchor(text)}">${this.parser.parseInline(tokens)}</h${depth}>\n`;
      },
      // A link may point to a file of the repository that is not published here.
      link({ href, tokens }: Tokens.Link) {
        const text = this.parser.parseInline(tokens);
        return leadsSomewhere(page, href) ? `<a href="${escapeHtml(href)}">${text}</a>` : text;
      },
    },
  });
}

function leadsSomewhere(page: string, href: string): boolean {
  const [file = ''] = href.split('#');
  return file === '' || PAGES.has(posix.join(posix.dirname(page), file));
}

function toAnchor(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, '-')
    .replace(/^-|-$/g, '');
}

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
}

const STYLE = `body { max-width: 46rem; margin: 0 auto; padding: 1rem; font: 16px/1.55 system-ui, sans-serif; color: #1c2430; }
nav { border-bottom: 1px solid #d8dee6; padding-bottom: .5rem; }
nav a { margin-right: 1rem; }
a { color: #0b5cad; }
code { font-size: .92em; background: #f2f4f7; padding: .1em .25em; }
pre { background: #f2f4f7; padding: .75rem; overflow-x: auto; }
pre code { padding: 0; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
th, td { border: 1px solid #d8dee6; padding: .3rem .6rem; text-align: left; vertical-align: top; }
h2 { margin-top: 2rem; }
`;
