/** The checklist for production: each item is a link, and its state is read from the production environment. */
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, type LinkProps } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import { api, readData } from '../../client/client.ts';
import { useMayNot } from '../../client/permission.ts';
import { invalidate } from '../../client/queries.ts';
import { sessionQuery, useSession } from '../../client/session.ts';
import { Button } from '../../components/button.tsx';
import { Chip } from '../../components/chip.tsx';
import { Confirm } from '../../components/confirm.tsx';
import { useTexts } from '../../texts/texts.ts';
import { buildEnvironmentOptions, useEnvironment } from './environment.ts';
import styles from './first-bill.module.css';
import { copyCatalogue } from './run-year.ts';
import { Step, type StepProps } from './step.tsx';
import { TEXTS } from './texts.ts';

const CHECKS = ['company', 'tax', 'numbering', 'webhook', 'team'] as const;
type CheckKey = (typeof CHECKS)[number];

export function ProductionStep({ bill, ...step }: StepProps): ReactNode {
  const texts = useTexts(TEXTS);
  return (
    <Step {...step} title={texts.production} summary={step.isDone ? texts.copied : texts.productionHint}>
      <Checklist />
      <CopyCatalogue isEmpty={bill.plans.length === 0} />
    </Step>
  );
}

function Checklist(): ReactNode {
  const texts = useTexts(TEXTS);
  const { environments } = useSession();
  const here = useEnvironment();
  const environment_id = (environments.find(({ type }) => type === 'production') ?? here).id;
  const { data: states } = useQuery({
    queryKey: ['/settings', 'checklist', environment_id] as const,
    queryFn: () => loadChecks(environment_id),
  });
  return (
    <ul className={styles.checks}>
      {CHECKS.map((key) => (
        <li key={key}>
          <Link
            to={
              (key === 'webhook' ? '/env/$environment_id/webhooks' : '/env/$environment_id/settings') as LinkProps['to']
            }
            params={{ environment_id } as never}
            search={(key === 'webhook' ? {} : { tab: key }) as never}
          >
            {texts[key]}
          </Link>
          {states && <Chip tone={states[key] ? 'ok' : 'plain'}>{states[key] ? texts.isSet : texts.notSet}</Chip>}
        </li>
      ))}
    </ul>
  );
}

/** Settings and records that an environment has. A list that the role may not read counts as not set up. */
async function loadChecks(environment_id: string): Promise<Record<CheckKey, boolean>> {
  const there = buildEnvironmentOptions(environment_id);
  const count = async (answer: Promise<{ items?: unknown[] | null }>) => (await answer).items?.length ?? 0;
  const orNone = (answer: Promise<number>) => answer.catch(() => 0);
  const [settings, rates, endpoints, people] = await Promise.all([
    readData(api.GET('/settings', { ...there })),
    orNone(readData(api.GET('/taxes/rates', { ...there })).then(({ length }) => length)),
    orNone(count(readData(api.GET('/webhooks/endpoints', { params: { query: { limit: 1 } }, ...there })))),
    orNone(count(readData(api.POST('/users/search', { body: { limit: 2, type: 'user' } as never, ...there })))),
  ]);
  const find = (key: string) => settings.items.find((each) => each.key === key);
  return {
    company: Boolean((find('invoice_pdf_config')?.value as { company?: unknown } | undefined)?.company),
    tax: rates > 0 || find('tax_config')?.is_set === true,
    numbering: find('invoice_config')?.is_set === true,
    webhook: endpoints > 0,
    team: people > 1,
  };
}

function CopyCatalogue({ isEmpty }: { isEmpty: boolean }): ReactNode {
  const texts = useTexts(TEXTS);
  const session = useSession();
  const mayNot = useMayNot('environment:write');
  const queries = useQueryClient();
  const here = useEnvironment();
  const [isAsking, setAsking] = useState(false);
  const production = session.environments.find(({ type }) => type === 'production');
  if (here.type === 'production') return <p className="label">{texts.inProduction}</p>;
  const copy = async () => {
    const target =
      production?.id ??
      (await readData(api.POST('/environments', { body: { name: 'Production', type: 'production' } }))).id;
    await copyCatalogue({ source_environment_id: here.id, target_environment_id: target });
    await queries.invalidateQueries({ queryKey: sessionQuery.queryKey });
    await invalidate(queries, '/plans', '/settings');
  };
  const blocked = mayNot ?? (isEmpty ? texts.firstSell : null);
  return (
    <div className={styles.actions}>
      <Button blocked={blocked} onClick={() => setAsking(true)}>
        {texts.copy}
      </Button>
      {production && (
        <Link to="/env/$environment_id" params={{ environment_id: production.id }} search={{}} className={styles.far}>
          {texts.openProduction}
        </Link>
      )}
      {isAsking && (
        <Confirm
          needs="environment:write"
          title={texts.copyTitle}
          action={texts.copyNow}
          onConfirm={copy}
          onClose={() => setAsking(false)}
        >
          {texts.copyWhat(here.name, production?.name ?? 'Production')}
        </Confirm>
      )}
    </div>
  );
}
