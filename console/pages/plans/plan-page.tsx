/** A plan: its prices by kind, what it grants, and who subscribes to it. */
import { useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import { api } from '../../client/client.ts';
import { useMayNot } from '../../client/permission.ts';
import { invalidate, useGet } from '../../client/queries.ts';
import { Button, primaryButtonClass } from '../../components/button.tsx';
import { Chip } from '../../components/chip.tsx';
import { Confirm } from '../../components/confirm.tsx';
import { CopyId } from '../../components/copy.tsx';
import { MoreMenu } from '../../components/more-menu.tsx';
import { PageHead } from '../../components/page.tsx';
import { RecordTools } from '../../components/record-tools.tsx';
import { SideSheet, WithSheet } from '../../components/side-sheet.tsx';
import { Loaded } from '../../components/states.tsx';
import { useTexts } from '../../texts/texts.ts';
import { EntitlementForm } from './entitlement-form.tsx';
import { GrantForm } from './grant-form.tsx';
import { PlanForm } from './plan-form.tsx';
import { PlanEntitlements, PlanGrants } from './plan-parts.tsx';
import { PlanPrices } from './plan-prices.tsx';
import type { PlanRecord } from './plan-queries.ts';
import { PlanSubscribers } from './plan-subscribers.tsx';
import { PLAN_TEXTS } from './plan-texts.ts';
import { RollOut } from './roll-out.tsx';
import type { PlanSearch } from './routes.ts';

const FROM = '/env/$environment_id/plans/$plan_id';

export function PlanPage(): ReactNode {
  const { plan_id } = useParams({ from: FROM });
  const plan = useGet('/plans/{id}', { path: { id: plan_id } });
  return (
    <Loaded query={plan} record_id={plan_id} rows={8}>
      {(record) => <PlanView plan={record} />}
    </Loaded>
  );
}

function PlanView({ plan }: { plan: PlanRecord }): ReactNode {
  const texts = useTexts(PLAN_TEXTS);
  const { sheet } = useSearch({ from: FROM });
  const navigate = useNavigate({ from: FROM });
  const queries = useQueryClient();
  const [isArchiving, setArchiving] = useState(false);
  const isSold = plan.status === 'published';
  const openSheet = (next?: PlanSearch['sheet']) =>
    void navigate({ search: (old) => ({ ...old, sheet: next }), resetScroll: false });
  const close = () => openSheet();
  const mayNot = {
    plan: useMayNot('plan:write'),
    entitlement: useMayNot('entitlement:write'),
    creditgrant: useMayNot('creditgrant:write'),
  };
  const side = {
    edit: <PlanForm plan={plan} onClose={close} />,
    copy: <PlanForm plan={plan} isCopy onClose={close} />,
    'roll-out': <RollOut plan={plan} onClose={close} />,
    entitlement: <EntitlementForm plan_id={plan.id} onClose={close} />,
    grant: <GrantForm plan_id={plan.id} onClose={close} />,
    record: (
      <SideSheet title={texts.record} subtitle={<CopyId id={plan.id} />} onClose={close}>
        <RecordTools record={plan} path={`/plans/${plan.id}`} entity_id={plan.id} />
      </SideSheet>
    ),
  };
  return (
    <WithSheet sheet={sheet && side[sheet]}>
      <PageHead
        title={plan.name}
        status={!isSold && <Chip>{texts.archived}</Chip>}
        subtitle={
          <>
            {plan.description && <>{plan.description} · </>}
            <CopyId id={plan.lookup_key ?? plan.id} />
          </>
        }
        actions={
          <>
            <MoreMenu
              actions={[
                { label: texts.record, onClick: () => openSheet('record') },
                ...(isSold
                  ? [
                      { label: texts.edit, blocked: mayNot.plan, onClick: () => openSheet('edit') },
                      { label: texts.copy, blocked: mayNot.plan, onClick: () => openSheet('copy') },
                      {
                        label: texts.archive,
                        blocked: mayNot.plan,
                        isDangerous: true,
                        onClick: () => setArchiving(true),
                      },
                    ]
                  : []),
              ]}
            />
            {isSold && (
              <>
                <Button blocked={mayNot.plan} onClick={() => openSheet('roll-out')}>
                  {texts.rollOut}
                </Button>
                <Link from={FROM} to="/env/$environment_id/plans/$plan_id/prices/new" className={primaryButtonClass}>
                  {texts.newPrice}
                </Link>
              </>
            )}
          </>
        }
      />
      <PlanPrices plan={plan} />
      <PlanEntitlements plan={plan} blocked={mayNot.entitlement} onAdd={() => openSheet('entitlement')} />
      <PlanGrants plan={plan} blocked={mayNot.creditgrant} onAdd={() => openSheet('grant')} />
      <PlanSubscribers plan={plan} />
      {isArchiving && (
        <Confirm
          needs="plan:write"
          title={texts.archiveTitle(plan.name)}
          action={texts.archiveNow}
          typed={plan.name}
          isDangerous
          onClose={() => setArchiving(false)}
          onConfirm={async () => {
            await api.DELETE('/plans/{id}', { params: { path: { id: plan.id } } });
            await invalidate(queries, '/plans', '/prices');
          }}
        >
          <p>{texts.archiveHint}</p>
        </Confirm>
      )}
    </WithSheet>
  );
}
