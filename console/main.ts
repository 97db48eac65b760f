/**
 * Starts the console in a browser. It speaks the public API alone and has no rule of billing in it. The router starts first and reads the
 * page's data; React and the components, which are most of the scripts, are loaded meanwhile (docs/decisions/0034).
 */
import './theme/mantine.css';
import '@fontsource-variable/geist/wght.css';
import '@fontsource-variable/geist-mono/wght.css';
import './theme/tokens.css';
import './theme/base.css';
import './theme/opening.css';
import './theme/overrides.css';
import { createSession, sessionQuery } from './client/session.ts';
import { queries, router } from './routing/router.ts';

const nonce = document.querySelector<HTMLMetaElement>('meta[property=csp-nonce]')?.nonce ?? '';
// The lock of scrolling behind a dialogue makes a style element, and reads its nonce from this global of bundlers.
Object.assign(globalThis, { __webpack_nonce__: nonce });

/**
 * Signs in by the one-time link of `npm start`. Its token is after the #, which no server receives, and is removed from the address. The page
 * is loaded once more, because index.html has preloaded the session before this sign-in.
 */
async function openLink(token: string): Promise<void> {
  history.replaceState(null, '', location.pathname + location.search);
  try {
    await createSession({ link_token: token });
  } catch {
    sessionStorage.setItem('farthing.link_refused', '1');
  }
  location.reload();
}

async function showConsole(): Promise<void> {
  // Every page takes the session that index.html preloads; a read after a later sign-in would otherwise get the unused old answer.
  void queries.prefetchQuery(sessionQuery);
  // The page is opened before React is there: its scripts and its data are loaded at the same time as React.
  const [{ render }] = await Promise.all([import('./shell/frame.tsx'), router.load()]);
  render({ router, queries, nonce });
}

const link_token = new URLSearchParams(location.hash.slice(1)).get('link');
if (link_token === null) void showConsole();
else void openLink(link_token);
