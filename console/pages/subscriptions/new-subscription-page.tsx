/** A new subscription, with its first invoice beside it. */
import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { type FormEvent, type ReactNode, useState } from 'react';
import { api, formatCurl, readData } from '../../client/client.ts';
import { invalidate, useGet } from '../../client/queries.ts';
import { showApiText } from '../../components/api-text.ts';
import { buttonClass } from '../../components/button.tsx';
import { CodeBlock } from '../../components/copy.tsx';
import { findFieldError } from '../../components/field-errors.ts';
import { FormFoot, useDeed } from '../../components/form.tsx';
import { Columns, PageHead } from '../../components/page.tsx';
import { SideSheet, WithSheet } from '../../components/side-sheet.tsx';
import { Failure, Loading } from '../../components/states.tsx';
import { useTexts } from '../../texts/texts.ts';
import { CustomerForm } from './customer-form.tsx';
import { FirstInvoice, type SubscriptionPreview } from './first-invoice.tsx';
import { MoreTerms, TERM_FIELDS } from './more-terms.tsx';
import { NEW_TEXTS } from './new-texts.ts';
import type { TermGroup } from './routes.ts';
import { EMPTY_DRAFT, followPlan, type SubscriptionDraft } from './subscription-draft.ts';
import { PricesPart, TermsPart, WhoPart } from './subscription-form.tsx';
import { buildRequest, findMissing } from './subscription-request.ts';
import styles from './subscriptions.module.css';

const FROM = '/env/$environment_id/subscriptions/new';

/** Fields of the request that show their errors beside their inputs. */
const FIELDS = [
  ...['customer_id', 'plan_id', 'currency', 'billing_period', 'billing_cycle', 'start_date', 'trial_period_days'],
  'override_line_items',
  ...Object.values(TERM_FIELDS).flat(),
];

export function NewSubscriptionPage(): ReactNode {
  const texts = useTexts(NEW_TEXTS);
  const { customer, plan: plan_id, sheet, terms = [] } = useSearch({ from: FROM });
  const navigate = useNavigate({ from: FROM });
  const queries = useQueryClient();
  const [draft, setDraft] = useState<SubscriptionDraft>({ ...EMPTY_DRAFT, customer_id: customer ?? '' });
  const set = (change: Partial<SubscriptionDraft>) => {
    // The last error belongs to the request before this change.
    create.reset();
    setDraft((old) => ({ ...old, ...change }));
  };
  const choosePlanId = (id: string | undefined) =>
    void navigate({ search: ({ plan: _, ...old }) => (id ? { ...old, plan: id } : old), replace: true });
  const plan = useGet('/plans/{id}', { path: { id: plan_id ?? '' } }, { enabled: plan_id !== undefined });
  const prices = plan.data?.id === plan_id ? (plan.data?.prices ?? []) : [];
  // The terms of the draft follow the plan, once its prices are known.
  const followed = followPlan(draft, plan_id, plan.data);
  if (followed !== draft) setDraft(followed);
  const chooseCustomer = (id: string | undefined) => {
    set({ customer_id: id ?? '' });
    void navigate({
      search: ({ customer: _, sheet: __, ...old }) => (id ? { ...old, customer: id } : old),
      replace: true,
    });
  };
  const openSheet = (next?: 'customer' | 'request') =>
    void navigate({ search: ({ sheet: _, ...old }) => (next ? { ...old, sheet: next } : old), resetScroll: false });
  const openTerms = (opened: readonly TermGroup[]) =>
    void navigate({
      search: ({ terms: _, ...old }) => (opened.length > 0 ? { ...old, terms: opened } : old),
      replace: true,
      resetScroll: false,
    });
  const request = buildRequest(draft);
  const missing = findMissing(draft);
  const preview = usePreview(draft);
  const create = useDeed(
    () => readData(api.POST('/subscriptions', { body: request! })),
    async ({ id }) => {
      await invalidate(queries, '/subscriptions', '/invoices', '/customers');
      await navigate({
        to: '/env/$environment_id/subscriptions/$subscription_id',
        params: (old) => ({ environment_id: old.environment_id!, subscription_id: id }),
        search: ({ zone }) => ({ zone }),
      });
    },
  );
  const findError = (field: string) => findFieldError(create, field) ?? findFieldError(preview, field);
  const refusal = create.error ?? preview.error;
  const part = { draft, prices, findError, error: refusal, set };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    create.mutate(undefined);
  };
  const side =
    sheet === 'customer' ? (
      <CustomerForm onCreated={chooseCustomer} onClose={() => openSheet()} />
    ) : sheet === 'request' ? (
      <SideSheet title={texts.request} onClose={() => openSheet()}>
        <CodeBlock label={texts.request} code={formatCurl('POST', '/subscriptions', request ?? {})} />
      </SideSheet>
    ) : null;
  return (
    <WithSheet sheet={side}>
      <PageHead title={texts.title} subtitle={texts.subtitle} />
      <Columns
        side={
          <div className={styles.sticky}>
            <FirstInvoice
              preview={preview}
              missing={missing === null ? null : texts.missing(missing)}
              isLater={draft.start_day !== ''}
              isFieldError={FIELDS.some((field) => findFieldError(preview, field) !== undefined)}
            />
          </div>
        }
      >
        <form onSubmit={submit}>
          <WhoPart
            draft={draft}
            plan_id={plan_id}
            findError={findError}
            isEmptyPlan={plan_id !== undefined && plan.data?.id === plan_id && prices.length === 0}
            onCustomer={chooseCustomer}
            onNewCustomer={() => openSheet('customer')}
            onPlan={choosePlanId}
          />
          {draft.plan_id === '' && plan_id !== undefined && !plan.isError && <Loading rows={6} />}
          {plan.isError && <Failure error={plan.error} />}
          {draft.plan_id !== '' && (
            <>
              <TermsPart {...part} />
              <PricesPart {...part} />
              <MoreTerms {...part} opened={terms} onOpened={openTerms} />
            </>
          )}
          <FormFoot
            needs="subscription:write"
            deed={create}
            fields={FIELDS}
            action={draft.is_draft ? texts.createDraft : texts.create}
            blocked={missing !== null ? texts.missing(missing) : preview.isError && showApiText(preview.error.message)}
          >
            <button type="button" className={buttonClass} onClick={() => openSheet('request')}>
              {texts.request}
            </button>
          </FormFoot>
        </form>
      </Columns>
    </WithSheet>
  );
}

function usePreview(draft: SubscriptionDraft) {
  const [settled] = useDebouncedValue(draft, 300);
  const body = buildRequest(settled);
  return useQuery({
    queryKey: ['/subscriptions/preview', body] as const,
    queryFn: async () =>
      (await readData(api.POST('/subscriptions/preview', { body: body! }))) as unknown as SubscriptionPreview,
    enabled: body !== null,
    placeholderData: keepPreviousData,
    retry: false,
  });
}
