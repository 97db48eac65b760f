/**
 * Starts the console in a browser. It speaks the public API alone and has no rule of billing in it. The router starts first and reads the
 * page's data; React DOM and the components, which are most of the scripts, are preloaded and evaluated after these reads are sent
 * (docs/decisions/0034-console.md).
 */
import './theme/mantine.css';
import '@fontsource-variable/geist/wght.css';
import '@fontsource-variable/geist-mono/wght.css';
import './theme/tokens.css';
import './theme/base.css';
import './theme/opening.css';
import './theme/overrides.css';
import type { AnyRoute } from '@tanstack/react-router';
import { createSession, sessionQuery } from './client/session.ts';
import { queries, router } from './routing/router.ts';
import { defineTexts, readLanguage } from './texts/texts.ts';

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

/** Loads the scripts of the page while its session is read. */
function loadPageScripts(): void {
  const routes: Readonly<Record<string, AnyRoute>> = router.routesById;
  for (const { routeId } of router.matchRoutes(router.latestLocation)) {
    const route = routes[routeId];
    // The router loads the same scripts, and shows what failed.
    if (route) router.loadRouteChunk(route)?.catch(() => undefined);
  }
}

async function showConsole(): Promise<void> {
  // Every page takes the session that index.html preloads; a read after a later sign-in would otherwise get the unused old answer.
  void queries.prefetchQuery(sessionQuery);
  loadPageScripts();
  // React follows the history from its first render on. Until then the reader may go back, too.
  // React subscribes `router.load` itself, and subscriptions are a set, so that this one is a function of its own.
  const stopFollowing = router.history.subscribe(() => void router.load());
  const stopListening = router.subscribe('onRendered', () => {
    stopFollowing();
    stopListening();
  });
  const loaded = router.load();
  const [{ render }] = await Promise.all([loadFrame(), loaded]);
  render({ router, queries, nonce });
  sessionStorage.removeItem(RELOADED);
}

/**
 * The reads of the page need the session. This waits for it, so that they are sent before React DOM and the components are evaluated, which
 * blocks the browser. Each script is evaluated in a task of its own.
 */
async function loadFrame() {
  await queries.ensureQueryData(sessionQuery).catch(() => undefined);
  await import('react-dom/client');
  return import('./shell/frame.tsx');
}

const RELOADED = 'farthing.reloaded';

/** A script did not arrive. It is requested once more by a reload; after that the reader decides. */
function recover(error: unknown): void {
  if (sessionStorage.getItem(RELOADED) === null) {
    sessionStorage.setItem(RELOADED, '1');
    location.reload();
    return;
  }
  const texts = TEXTS[readLanguage()];
  const again = Object.assign(document.createElement('a'), { href: location.href, textContent: texts.again });
  const message = document.createElement('p');
  message.setAttribute('role', 'alert');
  message.append(`${texts.failed} `, again);
  document.querySelector('#root > .opening')?.replaceChildren(message);
  throw error;
}

const TEXTS = defineTexts(
  { failed: 'The console could not be loaded.', again: 'Try again' },
  { de: { failed: 'Die Konsole konnte nicht geladen werden.', again: 'Erneut versuchen' } },
);

const link_token = new URLSearchParams(location.hash.slice(1)).get('link');
if (link_token === null) showConsole().catch(recover);
else void openLink(link_token);
