/** Renders the console. The router loads the components around its pages from this file, too (routing/root-route.ts). */
import { MantineProvider } from '@mantine/core';
import { Notifications } from '@mantine/notifications';
import { type QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { type AnyRouter, type ErrorComponentProps, RouterProvider } from '@tanstack/react-router';
import { type ReactNode, StrictMode, startTransition } from 'react';
import { createRoot } from 'react-dom/client';
import { Failure } from '../components/states.tsx';
import { resolveVariables, theme } from '../theme/theme.ts';
import { LanguageProvider } from './language.tsx';

export { MissingPage, MissingPageAlone } from './missing-page.tsx';
export { Shell } from './shell.tsx';

export function FailedPage({ error }: ErrorComponentProps): ReactNode {
  return <Failure error={error} onRetry={() => location.reload()} />;
}

type FrameInput = { readonly router: AnyRouter; readonly queries: QueryClient; readonly nonce: string };

export function render({ router, queries, nonce }: FrameInput): void {
  const root = createRoot(document.getElementById('root')!);
  // A transition is rendered in slices, so that a large page does not block the browser.
  startTransition(() =>
    root.render(
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
    ),
  );
}
