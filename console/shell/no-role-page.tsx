/** The page of a user without a role that may read: an administrator removed the roles, or has not granted one yet. */
import type { ReactNode } from 'react';
import { useSession } from '../client/session.ts';
import { buttonClass } from '../components/button.tsx';
import { StateActions, StateOfPage } from '../components/states.tsx';
import { defineTexts, useTexts } from '../texts/texts.ts';
import { LonePage } from './lone-page.tsx';
import { SignOut } from './sign-out.tsx';

export function NoRolePage(): ReactNode {
  const texts = useTexts(TEXTS);
  const { user, tenant } = useSession();
  return (
    <LonePage>
      <StateOfPage title={texts.title}>
        <p>
          {texts.signedIn} <bdi>{user.email ?? user.name ?? user.id}</bdi>, <bdi>{tenant.name}</bdi>
        </p>
        <p className="muted">{texts.hint}</p>
        <StateActions>
          <a href="/" className={buttonClass}>
            {texts.retry}
          </a>
          <SignOut className={buttonClass} />
        </StateActions>
      </StateOfPage>
    </LonePage>
  );
}

const TEXTS = defineTexts(
  {
    title: 'Your role may not see this',
    signedIn: 'Signed in:',
    hint: 'None of your roles allows you to read anything. An administrator of your company can grant one under Settings, Team.',
    retry: 'Try again',
  },
  {
    de: {
      title: 'Ihre Rolle darf das nicht sehen',
      signedIn: 'Angemeldet:',
      hint: 'Keine Ihrer Rollen berechtigt zum Lesen. Jemand mit Verwaltungsrechten in Ihrem Unternehmen kann Ihnen unter „Einstellungen, Team“ eine vergeben.',
      retry: 'Erneut versuchen',
    },
  },
);
