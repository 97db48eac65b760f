/** From nothing to a first bill: five steps on the copper line, and the next invoice beside them. */
import { useNavigate, useSearch } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { Columns, PageHead } from '../../components/page.tsx';
import { Failure, Loading } from '../../components/states.tsx';
import { Thread } from '../../components/thread.tsx';
import { useTexts } from '../../texts/texts.ts';
import { AdvanceStep } from './advance-step.tsx';
import { useEnvironment } from './environment.ts';
import styles from './first-bill.module.css';
import { LineWhy } from './line-why.tsx';
import { LiveInvoice, useNextInvoice } from './live-invoice.tsx';
import { ProductionStep } from './production-step.tsx';
import { isStepOpen, type StepKey } from './progress.ts';
import { type FirstBillSearch, FROM } from './routes.ts';
import { SellStep } from './sell-step.tsx';
import { SendStep } from './send-step.tsx';
import type { StepProps } from './step.tsx';
import { SubscribeStep } from './subscribe-step.tsx';
import { TEXTS } from './texts.ts';
import { useEventStream, useFirstBill } from './use-first-bill.ts';

export function FirstBillPage(): ReactNode {
  const texts = useTexts(TEXTS);
  const environment = useEnvironment();
  const bill = useFirstBill();
  useEventStream();
  const { step, why } = useSearch({ from: FROM });
  const navigate = useNavigate({ from: FROM });
  const search = (next: { [Key in keyof FirstBillSearch]: FirstBillSearch[Key] | undefined }) =>
    void navigate({ search: (old) => ({ ...old, ...next }), replace: true, resetScroll: false });
  const next = useNextInvoice(bill.subscription?.id);
  const { done } = bill.progress;
  const propsOf = (key: StepKey): StepProps => {
    const isOpen = isStepOpen(key, step, bill.progress.next);
    return {
      bill,
      isDone: done.has(key),
      isOpen,
      onToggle: () => search({ step: isOpen ? 'none' : key }),
      onPin: () => search({ step: key }),
    };
  };
  const line = next.data?.line_items?.find(({ price_id }) => price_id === why);
  return (
    <Columns
      side={
        <>
          <LiveInvoice subscription={bill.subscription} next={next} onWhy={(id) => search({ why: id })} />
          {line && (
            <div className={styles.sheet}>
              <LineWhy line={line} onClose={() => search({ why: undefined })} />
            </div>
          )}
        </>
      }
    >
      <div className={styles.page}>
        <PageHead
          title={texts.title}
          subtitle={
            environment.type === 'production'
              ? texts.youAreInProduction(environment.name)
              : texts.youAreIn(environment.name)
          }
        />
        {bill.error ? (
          <Failure error={bill.error} />
        ) : bill.isPending ? (
          <Loading rows={8} />
        ) : (
          <div className={styles.steps}>
            <Thread>
              <SellStep {...propsOf('sell')} />
              <SendStep {...propsOf('send')} />
              <SubscribeStep {...propsOf('subscribe')} />
              <AdvanceStep {...propsOf('advance')} />
              <ProductionStep {...propsOf('production')} />
            </Thread>
          </div>
        )}
      </div>
    </Columns>
  );
}
