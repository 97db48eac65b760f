import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { environmentRoute } from '../../routing/root-route.ts';
import { compact, readOneOf, readText, type SearchInput } from '../../routing/search.ts';
import { COMMAND_LANGUAGES, type CommandLanguage } from './commands.ts';
import { STEPS, type StepKey } from './progress.ts';

/** `step` is the step that is open instead of the next one, or `none`; `with` the language of the command, `why` a line of the next invoice. */
export type FirstBillSearch = { step?: StepKey | 'none'; with?: CommandLanguage; why?: string };

export const FROM = '/env/$environment_id/first-bill';

const firstBill = createRoute({
  getParentRoute: () => environmentRoute,
  path: '/first-bill',
  validateSearch: (input: SearchInput): FirstBillSearch =>
    compact({
      step: readOneOf(input, 'step', [...STEPS, 'none']),
      with: readOneOf(input, 'with', COMMAND_LANGUAGES),
      why: readText(input, 'why'),
    }),
  component: lazyRouteComponent(() => import('./first-bill-page.tsx'), 'FirstBillPage'),
});

export const firstBillRoutes = [firstBill] as const;
