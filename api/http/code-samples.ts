/**
 * Request samples per operation for curl, and for the published client if it has a method for it: `x-codeSamples` of the OpenAPI document.
 * test/interface/examples.test.ts runs each of them and compares the sent request with the recorded one.
 */
import type { Example } from './examples.ts';
import type { Route } from './route.ts';

export type CodeSample = { readonly lang: string; readonly label: string; readonly source: string };

const SERVER = 'http://localhost:8080/v1';

/** Test routes have no example. */
export function buildCodeSamples(route: Route, body: unknown, { path, call }: Example): CodeSample[] {
  if (path === undefined) return [];
  const curl = { lang: 'Shell', label: 'curl', source: buildCurl(route, path, body) };
  if (call === undefined) return [curl];
  return [curl, { lang: 'TypeScript', label: '@flexprice/sdk', source: CLIENT + call }];
}

const CLIENT = `import { Flexprice } from '@flexprice/sdk';

const client = new Flexprice({ serverURL: '${SERVER}', apiKeyAuth: process.env.KEY });
`;

function buildCurl(route: Route, path: string, body: unknown): string {
  const method = route.method === 'get' ? '' : ` -X ${route.method.toUpperCase()}`;
  const key = route.access === 'public' ? [] : [`-H "x-api-key: $KEY"`];
  const signed = (route.signed ?? []).map((name) => `-H "${name}: $${name.toUpperCase().replaceAll('-', '_')}"`);
  const into = route.file_type === 'application/pdf' && !path.includes('url=true') ? ['-o invoice.pdf'] : [];
  return [`curl${method} ${quoted(SERVER + path)}`, ...key, ...signed, ...sentBody(route, body), ...into].join(
    ' \\\n  ',
  );
}

function sentBody({ takes_file }: Route, body: unknown): string[] {
  const [file] = Object.entries(takes_file ?? {});
  if (file) return typed(file[0], typeof file[1] === 'string' ? file[1] : JSON.stringify(file[1]));
  return body === undefined ? [] : typed('application/json', JSON.stringify(body, null, 2));
}

const typed = (type: string, text: string) => [`-H 'content-type: ${type}'`, `--data-binary ${quoted(text)}`];

/** Quotes a text for the shell: everything between single quotes is literal. */
const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
