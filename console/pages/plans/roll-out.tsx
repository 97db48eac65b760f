/** Rolls the latest prices of a plan out to its running subscriptions. First it shows which subscriptions change, and from when. */
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useEffect } from 'react';
import { useMayNot } from '../../client/permission.ts';
import { getQuery, invalidate, useGet } from '../../client/queries.ts';
import { showApiText } from '../../components/api-text.ts';
import { Button } from '../../components/button.tsx';
import { useDeed } from '../../components/form.tsx';
import { Facts, Section } from '../../components/page.tsx';
import { SideSheet } from '../../components/side-sheet.tsx';
import { Loaded } from '../../components/states.tsx';
import { Day } from '../../figures/when.tsx';
import { useTexts } from '../../texts/texts.ts';
import { type PlanRecord, startRollOut } from './plan-queries.ts';
import { PLAN_TEXTS } from './plan-texts.ts';
import styles from './plans.module.css';
import { PriceRate } from './price-rate.tsx';
import { PRICE_TEXTS } from './price-texts.ts';

const SUBSCRIPTIONS_MAX = 1000;
const SHOWN_MAX = 20;
const POLL_MS = 1000;
const RUNS = ['Running', 'Unknown'];

export function RollOut({ plan, onClose }: { plan: PlanRecord; onClose: () => void }): ReactNode {
  const texts = useTexts(PLAN_TEXTS);
  const terms = useTexts(PRICE_TEXTS);
  const queries = useQueryClient();
  const mayNot = useMayNot(['plan:write', 'subscription:write']);
  const prices = plan.prices ?? [];
  const last = Math.max(0, ...prices.map(({ sequence }) => sequence));
  const subscriptions = useGet('/subscriptions', {
    query: { plan_id: plan.id, expand: 'customer', limit: SUBSCRIPTIONS_MAX } as never,
  });
  const start = useDeed(() => startRollOut(queries, plan.id));
  const changed = (subscriptions.data?.items ?? []).filter(
    ({ subscription_status, synced_price_sequence }) =>
      subscription_status !== 'cancelled' && (synced_price_sequence ?? 0) < last,
  );
  const earliest = Math.min(last, ...changed.map(({ synced_price_sequence }) => synced_price_sequence ?? 0));
  const newPrices = prices.filter(({ sequence }) => sequence > earliest);
  return (
    <SideSheet
      title={texts.rollOutTitle}
      subtitle={texts.rollOutHint}
      onClose={onClose}
      footer={
        start.data ? (
          <Button onClick={onClose}>{texts.close}</Button>
        ) : (
          <Button
            isPrimary
            isBusy={start.isPending}
            blocked={mayNot ?? (subscriptions.data && changed.length === 0 ? texts.rollOutNone : null)}
            onClick={() => start.mutate(undefined)}
          >
            {texts.rollOutNow}
          </Button>
        )
      }
    >
      {start.error && (
        <p role="alert" className={styles.warning}>
          {showApiText(start.error.message)}
        </p>
      )}
      {start.data ? (
        <RunProgress workflow_id={start.data.workflow_id} run_id={start.data.run_id} />
      ) : (
        <Loaded query={subscriptions} rows={4}>
          {({ pagination }) =>
            changed.length === 0 ? (
              <p className="muted">{texts.rollOutNone}</p>
            ) : (
              <>
                <Section title={texts.newPrices}>
                  <ul className={styles.records}>
                    {newPrices.map((price) => (
                      <li key={price.id}>
                        <bdi>{price.display_name ?? terms.unnamed}</bdi>
                        <span>
                          <PriceRate price={price} />
                        </span>
                      </li>
                    ))}
                  </ul>
                  <Facts
                    facts={[
                      { label: texts.usageFrom, value: texts.usageWhen },
                      { label: texts.feesFrom, value: texts.feesWhen },
                      { label: texts.overridden, value: texts.overriddenWhen },
                    ]}
                  />
                </Section>
                <Section
                  title={texts.rollOutCount(changed.length)}
                  hint={pagination.total > SUBSCRIPTIONS_MAX ? texts.rollOutOf(SUBSCRIPTIONS_MAX) : undefined}
                  end={<span className="label">{texts.nextPeriod}</span>}
                >
                  <ul className={styles.records}>
                    {changed.slice(0, SHOWN_MAX).map((each) => (
                      <li key={each.id}>
                        <bdi>{each.customer?.name || each.customer_id}</bdi>
                        <Day at={each.current_period_end} />
                      </li>
                    ))}
                  </ul>
                  {changed.length > SHOWN_MAX && <p className="label">+ {changed.length - SHOWN_MAX}</p>}
                </Section>
              </>
            )
          }
        </Loaded>
      )}
    </SideSheet>
  );
}

type RunProgressProps = { workflow_id: string; run_id: string };

/** The roll-out runs in the background; its summary is read until it has ended. */
function RunProgress({ workflow_id, run_id }: RunProgressProps): ReactNode {
  const texts = useTexts(PLAN_TEXTS);
  const run = useQuery({
    ...getQuery('/workflows/{workflow_id}/{run_id}/summary', { path: { workflow_id, run_id } }),
    refetchInterval: ({ state }) => (state.data && !RUNS.includes(state.data.status) ? false : POLL_MS),
  });
  const { data } = run;
  const queries = useQueryClient();
  const isDone = data?.status === 'Completed';
  useEffect(() => {
    if (isDone) void invalidate(queries, '/subscriptions');
  }, [isDone, queries]);
  const synced = data?.result?.['subscriptions_synced'];
  if (isDone) return <p role="status">{texts.rollOutDone(typeof synced === 'number' ? String(synced) : '–')}</p>;
  if (data && !RUNS.includes(data.status))
    return (
      <p role="alert">
        {texts.rollOutFailed} {data.error && showApiText(data.error.message)}
      </p>
    );
  return <p role="status">{texts.rollOutRuns}</p>;
}
