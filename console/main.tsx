/** The console in a browser. It speaks the public API alone and has no rule of billing in it. */
import './theme/mantine.css';
import '@fontsource-variable/geist/wght.css';
import '@fontsource-variable/geist-mono/wght.css';
import './theme/tokens.css';
import './theme/base.css';
import './theme/opening.css';
import './theme/overrides.css';
import { MantineProvider } from '@mantine/core';
import { Notifications } from '@mantine/notifications';
import { QueryClientProvider } from '@tanstack/react-query';
import { type AnyRoute, RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { createSession, sessionQuery } from './client/session.ts';
import { queries, router } from './routing/router.ts';
import { LanguageProvider } from './shell/language.tsx';
import { resolveVariables, theme } from './theme/theme.ts';

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
    if (route) void router.loadRouteChunk(route);
  }
}

function showConsole(): void {
  // Every page takes the session that index.html preloads; a read after a later sign-in would otherwise get the unused old answer.
  void queries.prefetchQuery(sessionQuery);
  loadPageScripts();
  createRoot(document.getElementById('root')!).render(
    <StrictMode>
      <MantineProvider
        theme={theme}
        cssVariablesResolver={resolveVariables}
        defaultColorScheme="auto"
        getStyleNonce={() => nonce}
      >
        <QueryClientProvider client={queries}>
          <LanguageProvider>
            <RouterProvider router={router} />
            <Notifications position="bottom-right" />
          </LanguageProvider>
        </QueryClientProvider>
      </MantineProvider>
    </StrictMode>,
  );
}

const link_token = new URLSearchParams(location.hash.slice(1)).get('link');
if (link_token === null) showConsole();
else void openLink(link_token);
