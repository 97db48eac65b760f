/** A year in a minute: the clock advances in an environment of its own, and invoices appear. Each opens to its thread. */
import { useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import { api, readData } from '../../client/client.ts';
import { useMayNot } from '../../client/permission.ts';
import { invalidate } from '../../client/queries.ts';
import { sessionQuery } from '../../client/session.ts';
import { showApiText } from '../../components/api-text.ts';
import { Button } from '../../components/button.tsx';
import { useDeed } from '../../components/form.tsx';
import { formatDay } from '../../figures/format.ts';
import { Period, useZone } from '../../figures/when.tsx';
import { useLanguage, useTexts } from '../../texts/texts.ts';
import { useEnvironment } from './environment.ts';
import styles from './first-bill.module.css';
import { InvoiceTotal } from './invoice-total.tsx';
import { runYear, YEAR_STEPS, type YearStep } from './run-year.ts';
import { Step, type StepProps } from './step.tsx';
import { TEXTS } from './texts.ts';
import { type FirstBill, isAdvancing } from './use-first-bill.ts';

type YearProgress = { readonly step: YearStep; readonly detail?: string | undefined };

export function AdvanceStep({ bill, onPin, ...step }: StepProps): ReactNode {
  const texts = useTexts(TEXTS);
  const environment = useEnvironment();
  const { progress: ownProgress, run } = useYearRun(bill);
  const clock = bill.year?.clock;
  const isBusy = run.isPending || isAdvancing(clock);
  // After a reload the clock itself says how far the year is.
  const progress: YearProgress | null =
    !run.isPending && clock && isAdvancing(clock) ? { step: 'advance', detail: clock.frozen_time } : ownProgress;
  const isOwnClock = Boolean(environment.test_clock_id);
  const mayNot = useMayNot(['test_clock:write', 'environment:write']);
  const blocked = bill.subscription ? mayNot : texts.firstSubscribe;
  const start = (months: number) => {
    onPin();
    run.mutate(months);
  };
  return (
    <Step
      {...step}
      title={texts.advance}
      summary={step.isOpen ? (isOwnClock ? texts.advanceHere : texts.advanceHint) : undefined}
      value={!step.isOpen && step.isDone && bill.invoices ? texts.invoiceCount(bill.invoices.length) : undefined}
    >
      <div className={styles.actions}>
        <Button isPrimary={!step.isDone} isBusy={isBusy} blocked={blocked} onClick={() => start(12)}>
          {texts.year}
        </Button>
        <Button isBusy={isBusy} blocked={blocked} onClick={() => start(1)}>
          {texts.month}
        </Button>
      </div>
      {progress && (isBusy || run.error) && <YearSteps progress={progress} isFailed={run.error !== null} />}
      {run.error && (
        <p role="alert" className={styles.error}>
          {texts.failedYear} {showApiText(run.error.message)}
        </p>
      )}
      <YearInvoices bill={bill} />
    </Step>
  );
}

function useYearRun(bill: FirstBill) {
  const texts = useTexts(TEXTS);
  const queries = useQueryClient();
  const environment = useEnvironment();
  const [progress, setProgress] = useState<YearProgress | null>(null);
  const leave = useRef<AbortController | null>(null);
  // The run ends with the page; its records remain, and the next run continues from them.
  useEffect(() => () => leave.current?.abort(), []);
  const refresh = async () => {
    await queries.invalidateQueries({ queryKey: sessionQuery.queryKey });
    await invalidate(queries, '/test-clocks', '/invoices');
  };
  const run = useDeed(async (months: number) => {
    leave.current = new AbortController();
    setProgress({ step: 'environment' });
    const { subscription, plans } = bill;
    const customer = await readData(
      api.GET('/customers/{id}', { params: { path: { id: subscription!.customer_id } } }),
    );
    try {
      await runYear({
        source_environment_id: environment.id,
        name: texts.yearName(customer.name ?? customer.external_id),
        subscription: subscription!,
        plan: plans.find(({ id }) => id === subscription!.plan_id) ?? { name: subscription!.plan_id },
        environment_id: environment.test_clock_id ? environment.id : (bill.year?.environment_id ?? null),
        event_names: new Set(bill.meters.map(({ event_name }) => event_name)),
        months,
        signal: leave.current.signal,
        onStep: (step, detail) => {
          setProgress({ step, detail });
          if (step !== 'environment') void refresh();
        },
      });
    } finally {
      await refresh();
    }
  });
  return { progress, run };
}

function YearSteps({ progress, isFailed }: { progress: YearProgress; isFailed: boolean }): ReactNode {
  const texts = useTexts(TEXTS);
  const language = useLanguage();
  const zone = useZone();
  const at = YEAR_STEPS.indexOf(progress.step);
  const names: Record<YearStep, string> = {
    environment: texts.stepEnvironment,
    catalogue: texts.stepCatalogue,
    customer: texts.stepCustomer,
    events: progress.step === 'events' && progress.detail ? texts.stepEvents(progress.detail) : texts.stepEventsPlain,
    advance: texts.stepAdvance,
  };
  return (
    <ol className={styles.year} role="status">
      {YEAR_STEPS.map((step, index) => (
        <li key={step} data-state={index < at ? 'done' : index === at ? (isFailed ? 'failed' : 'now') : 'later'}>
          {names[step]}
          {step === 'advance' && progress.step === 'advance' && progress.detail && (
            <span className="label">
              {' '}
              {texts.clockAt} {formatDay(language, progress.detail, zone)}
            </span>
          )}
        </li>
      ))}
    </ol>
  );
}

function YearInvoices({ bill }: { bill: FirstBill }): ReactNode {
  const texts = useTexts(TEXTS);
  const environment = useEnvironment();
  const environment_id = bill.year?.environment_id ?? environment.id;
  if (!bill.invoices?.length) return null;
  return (
    <div className={styles.invoices}>
      <div className={styles.invoicesHead}>
        <h3>{texts.invoices}</h3>
        {environment_id !== environment.id && (
          <Link to="/env/$environment_id" params={{ environment_id }} search={{}}>
            {texts.openYear}
          </Link>
        )}
      </div>
      <ul>
        {bill.invoices.map((invoice) => (
          <li key={invoice.id}>
            <Link
              to="/env/$environment_id/invoices/$invoice_id"
              params={{ environment_id, invoice_id: invoice.id }}
              search={{}}
            >
              {invoice.invoice_number ?? texts.draft}
            </Link>
            <Period start={invoice.period_start} end={invoice.period_end} />
            <InvoiceTotal environment_id={environment_id} invoice={invoice} />
          </li>
        ))}
      </ul>
    </div>
  );
}
