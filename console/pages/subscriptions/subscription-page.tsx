/** A subscription: its running charges, past and schedule on one time line, and its parts. */
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { lazy, type ReactNode, Suspense, useState } from 'react';
import { api, readData } from '../../client/client.ts';
import { useMayNot } from '../../client/permission.ts';
import { invalidate, postQuery, useGet } from '../../client/queries.ts';
import { can, useSession } from '../../client/session.ts';
import { Button } from '../../components/button.tsx';
import { Chip } from '../../components/chip.tsx';
import { Confirm } from '../../components/confirm.tsx';
import { CopyId } from '../../components/copy.tsx';
import { PageHead, Section } from '../../components/page.tsx';
import { RecordTools } from '../../components/record-tools.tsx';
import { SideSheet, WithSheet } from '../../components/side-sheet.tsx';
import { Failure, Loaded, Loading } from '../../components/states.tsx';
import { formatMoney } from '../../figures/format.ts';
import { BigMoney, WhyButton } from '../../figures/money.tsx';
import { Day, Period } from '../../figures/when.tsx';
import { useLanguage, useTexts } from '../../texts/texts.ts';
import type { InvoiceRecord } from '../invoices/invoice.ts';
import { InvoiceLines } from '../invoices/lines.tsx';
import { InvoiceTotals } from '../invoices/totals.tsx';
import { AddonSheet } from './addon-sheet.tsx';
import { CancelSheet } from './cancel-sheet.tsx';
import { PlanSheet } from './plan-sheet.tsx';
import { QuantitySheet } from './quantity-sheet.tsx';
import type { SubscriptionSearch } from './routes.ts';
import { numberLines, type ScheduleRecord, STATUS_TONES, type SubscriptionRecord } from './subscription.ts';
import { SubscriptionActions } from './subscription-actions.tsx';
import {
  SubscribedLines,
  SubscriptionAddons,
  SubscriptionEntitlements,
  SubscriptionFacts,
} from './subscription-parts.tsx';
import styles from './subscriptions.module.css';
import { TEXTS } from './texts.ts';
import { PlanName, TimeLine } from './time-line-view.tsx';

const FROM = '/env/$environment_id/subscriptions/$subscription_id';
const POLL_MS = 5_000;

// The threads bring the verifier of invoices with them.
const LineThread = lazy(async () => ({
  default: (await import('../invoices/thread/line-thread.tsx')).LineThread,
}));
const TotalThread = lazy(async () => ({
  default: (await import('../invoices/thread/total-thread.tsx')).TotalThread,
}));

export function SubscriptionPage(): ReactNode {
  const { subscription_id } = useParams({ from: FROM });
  const subscription = useGet('/subscriptions/{id}', { path: { id: subscription_id } });
  return (
    <Loaded query={subscription} record_id={subscription_id} rows={10}>
      {(shown) => <SubscriptionView key={subscription_id} subscription={shown as SubscriptionRecord} />}
    </Loaded>
  );
}

/** The next invoice as it would be now; it is read again while the page is in view. */
function useNextInvoice({ id, customer, subscription_status }: SubscriptionRecord) {
  const session = useSession();
  const body = { subscription_id: id };
  const preview = useQuery({
    ...postQuery('/invoices/preview', body, () => api.POST('/invoices/preview', { body })),
    enabled: can(session, 'invoice', 'read') && subscription_status !== 'cancelled',
    refetchInterval: POLL_MS,
  });
  const invoice =
    preview.data && numberLines({ ...(preview.data as InvoiceRecord), customer: customer ?? null } as InvoiceRecord);
  return { preview, invoice };
}

function SubscriptionView({ subscription }: { subscription: SubscriptionRecord }): ReactNode {
  const texts = useTexts(TEXTS);
  const session = useSession();
  const { why, sheet, addon } = useSearch({ from: FROM });
  const navigate = useNavigate({ from: FROM });
  const [undone, setUndone] = useState<string | null>(null);
  const { id, subscription_status, timezone } = subscription;
  const { preview, invoice } = useNextInvoice(subscription);
  const schedules = useGet('/subscriptions/{id}/schedules', { path: { id } });
  const pending = schedules.data?.schedules.find(({ status }) => status === 'pending');
  const show = (next: SubscriptionSearch) =>
    void navigate({ search: ({ zone }) => ({ zone, ...next }), replace: true, resetScroll: false });
  const close = () => show({});
  const ask = (next: string | undefined) => show(next === undefined ? {} : { why: next });
  const line = invoice?.line_items?.find((each) => each.id === why);
  const sheets = {
    plan: <PlanSheet subscription={subscription} onClose={close} />,
    quantity: <QuantitySheet subscription={subscription} onClose={close} />,
    cancel: <CancelSheet subscription={subscription} onClose={close} />,
    addon: <AddonSheet key={addon} subscription={subscription} association_id={addon} onClose={close} />,
    record: (
      <SideSheet title={texts.record} subtitle={<CopyId id={id} />} onClose={close}>
        <RecordTools record={subscription} path={`/subscriptions/${id}`} entity_id={id} />
      </SideSheet>
    ),
  };
  const thread =
    invoice && line ? (
      <LineThread key={line.id} invoice={invoice} line={line} event={undefined} onFollow={() => {}} onClose={close} />
    ) : invoice && why === 'total' ? (
      <TotalThread invoice={invoice} onAsk={ask} onClose={close} />
    ) : null;
  return (
    <WithSheet sheet={(sheet && sheets[sheet]) ?? (thread && <Suspense>{thread}</Suspense>)}>
      <SubscriptionHead
        subscription={subscription}
        invoice={invoice}
        pending={pending}
        onAsk={() => ask('total')}
        onSheet={(next) => show({ sheet: next })}
      />
      {pending && <ScheduleBanner schedule={pending} onUndo={() => setUndone(pending.id)} />}
      {!can(session, 'invoice', 'read') ? (
        <Section title={texts.running}>
          <p className="muted">{texts.mayNotPreview}</p>
        </Section>
      ) : invoice ? (
        <>
          <InvoiceLines invoice={invoice} why={why} onAsk={ask} title={texts.running} />
          <InvoiceTotals invoice={invoice} onAsk={() => ask('total')} />
          <p className={styles.hint}>
            {texts.overlaps} {timezone}.
          </p>
        </>
      ) : preview.isError ? (
        <Section title={texts.running}>
          <Failure error={preview.error} onRetry={() => void preview.refetch()} />
        </Section>
      ) : (
        subscription_status !== 'cancelled' && (
          <Section title={texts.running}>
            <Loading rows={3} />
          </Section>
        )
      )}
      <TimeLine subscription={subscription} next={invoice} onUndo={setUndone} />
      <SubscribedLines subscription={subscription} />
      <SubscriptionEntitlements subscription={subscription} />
      <SubscriptionAddons
        subscription={subscription}
        onAttach={() => show({ sheet: 'addon' })}
        onDetach={(association_id) => show({ sheet: 'addon', addon: association_id })}
      />
      <SubscriptionFacts subscription={subscription} />
      {undone !== null && (
        <UndoDialogue
          schedule={schedules.data?.schedules.find((each) => each.id === undone)}
          onClose={() => setUndone(null)}
        />
      )}
    </WithSheet>
  );
}

type SubscriptionHeadProps = {
  subscription: SubscriptionRecord;
  invoice: InvoiceRecord | undefined;
  pending: ScheduleRecord | undefined;
  onAsk: () => void;
  onSheet: (sheet: NonNullable<SubscriptionSearch['sheet']>) => void;
};

function SubscriptionHead({ subscription, invoice, pending, onAsk, onSheet }: SubscriptionHeadProps): ReactNode {
  const texts = useTexts(TEXTS);
  const language = useLanguage();
  const { customer, customer_id, plan, plan_id, subscription_status, billing_period, billing_period_count } =
    subscription;
  const name = customer?.name || customer?.external_id || customer_id;
  return (
    <PageHead
      title={`${name} · ${plan?.name ?? plan_id}`}
      status={<Chip tone={STATUS_TONES[subscription_status]}>{texts.statusName(subscription_status)}</Chip>}
      subtitle={
        <>
          <Link
            from={FROM}
            to="/env/$environment_id/customers/$customer_id"
            params={({ environment_id }) => ({ environment_id, customer_id })}
            search={({ zone }) => ({ zone })}
          >
            <bdi>{name}</bdi>
          </Link>
          {' · '}
          <Link
            from={FROM}
            to="/env/$environment_id/plans/$plan_id"
            params={({ environment_id }) => ({ environment_id, plan_id })}
            search={({ zone }) => ({ zone })}
          >
            <bdi>{plan?.name ?? plan_id}</bdi>
          </Link>
          {' · '}
          {texts.billed(billing_period, billing_period_count)}
          {' · '}
          <Period start={subscription.current_period_start} end={subscription.current_period_end} />
        </>
      }
      figure={
        invoice && (
          <>
            <span className={styles.figureLabel}>
              {subscription_status === 'draft' ? (
                texts.opening
              ) : (
                <>
                  {texts.nextOn} <Day at={subscription.current_period_end} />
                </>
              )}
            </span>
            <br />
            <WhyButton why={texts.whyTotal(formatMoney(language, invoice.total, invoice.currency))} onOpen={onAsk}>
              <BigMoney amount={invoice.total} currency={invoice.currency} />
            </WhyButton>
          </>
        )
      }
      actions={
        <SubscriptionActions subscription={subscription} isScheduled={pending !== undefined} onSheet={onSheet} />
      }
    />
  );
}

/** Scheduled changes, each with the action that undoes it. */
function ScheduleBanner({ schedule, onUndo }: { schedule: ScheduleRecord; onUndo: () => void }): ReactNode {
  const texts = useTexts(TEXTS);
  const mayNot = useMayNot('subscription:write');
  const target = schedule.configuration?.['target_plan_id'];
  return (
    <div className={styles.banner} role="status">
      <span>
        {schedule.schedule_type === 'cancellation' ? (
          texts.scheduledCancel
        ) : (
          <ScheduledPlan target={typeof target === 'string' ? target : null} />
        )}{' '}
        <Day at={schedule.scheduled_at} />
      </span>
      {schedule.can_be_cancelled && (
        <Button blocked={mayNot} onClick={onUndo}>
          {texts.undo}
        </Button>
      )}
    </div>
  );
}

function ScheduledPlan({ target }: { target: string | null }): ReactNode {
  const texts = useTexts(TEXTS);
  const [before = '', after = ''] = texts.scheduledPlan('\n').split('\n');
  return (
    <>
      {before}
      {target === null ? texts.anotherPlan : <PlanName plan_id={target} />}
      {after}
    </>
  );
}

function UndoDialogue({ schedule, onClose }: { schedule: ScheduleRecord | undefined; onClose: () => void }): ReactNode {
  const texts = useTexts(TEXTS);
  const queries = useQueryClient();
  if (!schedule) return null;
  return (
    <Confirm
      needs="subscription:write"
      title={texts.undoTitle}
      action={texts.undoNow}
      onClose={onClose}
      onConfirm={async () => {
        const params = { path: { schedule_id: schedule.id } };
        await readData(api.POST('/subscriptions/schedules/{schedule_id}/cancel', { params, body: {} }));
        await invalidate(queries, '/subscriptions', '/invoices', '/audit-logs');
      }}
    >
      <p>{schedule.schedule_type === 'cancellation' ? texts.undoCancelHint : texts.undoPlanHint}</p>
    </Confirm>
  );
}
