/** Chromium with the session of a service's first user: `await signIn(context, service)`. Needs `chromium` (Debian's package). */
import { type Browser, type BrowserContext, chromium } from 'playwright-core';
import { CONSOLE_HEADERS } from './browser.ts';
import { until } from './until.ts';

const BUILD_MS = 120_000;
const OWNER = { name: 'Ada Weber', email: 'ada@wren.example', password: 'a-password-for-the-first-user' };

export function launchChromium(): Promise<Browser> {
  return chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
}

/** Sets an email and a password of the user of the API key, and signs in by them. */
export async function signIn(
  context: BrowserContext,
  { url, api_key }: { readonly url: string; readonly api_key: string },
): Promise<void> {
  const send = async (method: string, path: string, { headers, body }: { headers: object; body: object }) => {
    const all = { 'content-type': 'application/json', ...headers };
    const response = await fetch(`${url}/v1${path}`, { method, headers: all, body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return response.headers.getSetCookie();
  };
  const { email, password } = OWNER;
  await send('PUT', '/users/me', { headers: { 'x-api-key': api_key }, body: OWNER });
  const [set] = await send('POST', '/auth/session', { headers: CONSOLE_HEADERS, body: { email, password } });
  const [name, value] = set!.split(';')[0]!.split('=') as [string, string];
  await context.addCookies([{ name, value, url, httpOnly: true, sameSite: 'Strict' }]);
}

/** Waits until the service has built its console. */
export async function waitForConsole(url: string): Promise<void> {
  const isBuilt = async () => {
    const response = await fetch(url, { headers: { accept: 'text/html' } });
    return response.status === 200 && (await response.text()).includes('id="root"');
  };
  await until('the console is built', isBuilt, BUILD_MS, 200);
}
