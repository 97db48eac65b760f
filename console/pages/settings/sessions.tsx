import { useQueryClient } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { api } from '../../client/client.ts';
import type { components } from '../../client/openapi.d.ts';
import { invalidate, useGet } from '../../client/queries.ts';
import { showApiText } from '../../components/api-text.ts';
import { Button } from '../../components/button.tsx';
import { Chip } from '../../components/chip.tsx';
import { useDeed } from '../../components/form.tsx';
import { Section, Sheet } from '../../components/page.tsx';
import { Empty, Loaded } from '../../components/states.tsx';
import { Moment } from '../../figures/when.tsx';
import { useTexts } from '../../texts/texts.ts';
import { ACCOUNT_TEXTS } from './account-texts.ts';
import { nameBrowser } from './name-browser.ts';
import styles from './settings.module.css';

type UserSession = components['schemas']['UserSession'];

/** The browsers in which the user is signed in. Any of them can be signed out from here. */
export function Sessions(): ReactNode {
  const texts = useTexts(ACCOUNT_TEXTS);
  const sessions = useGet('/auth/sessions');
  return (
    <Section title={texts.sessions} hint={texts.sessionsHint}>
      <Loaded query={sessions}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title={texts.noSessions} />
          ) : (
            <Sheet>
              <ul className={styles.list}>
                {items.map((each) => (
                  <SessionRow key={each.id} session={each} />
                ))}
              </ul>
            </Sheet>
          )
        }
      </Loaded>
    </Section>
  );
}

function SessionRow({ session }: { session: UserSession }): ReactNode {
  const texts = useTexts(ACCOUNT_TEXTS);
  const queries = useQueryClient();
  const { id, user_agent, last_used_at, created_at, is_current } = session;
  const end = useDeed(
    () => api.DELETE('/auth/sessions/{id}', { params: { path: { id } } }),
    () => invalidate(queries, '/auth/sessions'),
  );
  const browser = nameBrowser(user_agent);
  return (
    <li className={styles.session}>
      <div title={user_agent ?? undefined}>
        <div>
          <bdi>{browser ?? texts.unknownBrowser}</bdi> {is_current && <Chip tone="info">{texts.thisBrowser}</Chip>}
        </div>
        <div className="label">
          {texts.lastUsed} <Moment at={last_used_at} /> · {texts.since} <Moment at={created_at} />
        </div>
        {end.error && (
          <p role="alert" className={styles.error}>
            {showApiText(end.error.message)}
          </p>
        )}
      </div>
      {!is_current && (
        <Button
          isBusy={end.isPending}
          aria-label={texts.endSession(browser ?? texts.unknownBrowser)}
          onClick={() => end.mutate(undefined)}
        >
          {texts.signOut}
        </Button>
      )}
    </li>
  );
}
