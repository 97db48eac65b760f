/** The people and the service accounts of the tenant, with their roles. */
import { Checkbox, TextInput } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useSearch } from '@tanstack/react-router';
import { type FormEvent, type ReactNode, useState } from 'react';
import { api, readData } from '../../client/client.ts';
import type { components } from '../../client/openapi.d.ts';
import { invalidate, postQuery, useGet } from '../../client/queries.ts';
import { useSession } from '../../client/session.ts';
import { showApiText } from '../../components/api-text.ts';
import { Button } from '../../components/button.tsx';
import { Chip } from '../../components/chip.tsx';
import { Choice } from '../../components/choice.tsx';
import { CodeBlock, CopyId } from '../../components/copy.tsx';
import { type Column, DataTable } from '../../components/data-table.tsx';
import { findFieldError } from '../../components/field-errors.ts';
import { FormFoot, useDeed } from '../../components/form.tsx';
import { Facts } from '../../components/page.tsx';
import { RecordTools } from '../../components/record-tools.tsx';
import { SideSheet } from '../../components/side-sheet.tsx';
import { Loaded } from '../../components/states.tsx';
import { Unknown } from '../../figures/money.tsx';
import { useTexts } from '../../texts/texts.ts';
import { RoleNames } from './role-names.tsx';
import { describeRole, nameRole, ROLE_TEXTS } from './role-texts.ts';
import styles from './settings.module.css';
import type { SheetProps, TabProps } from './tab-props.ts';
import { TEAM_TEXTS } from './team-texts.ts';

type Member = components['schemas']['UserResponse'];
type MemberType = Member['type'];

const MEMBERS_MAX = 200;
const teamQuery = postQuery('/users/search', { limit: MEMBERS_MAX }, () =>
  api.POST('/users/search', { body: { limit: MEMBERS_MAX } }),
);

/** The service lets a super_admin alone change users. */
function useBlocked(): string | null {
  const texts = useTexts(TEAM_TEXTS);
  return useSession().user.roles.includes('super_admin') ? null : texts.mayNot;
}

export function TeamTab({ openSheet }: TabProps): ReactNode {
  const texts = useTexts(TEAM_TEXTS);
  const session = useSession();
  const { id } = useSearch({ from: '/env/$environment_id/settings' });
  const team = useQuery(teamQuery);
  const blocked = useBlocked();
  const columns: Column<Member>[] = [
    {
      key: 'name',
      header: texts.name,
      width: 'minmax(140px, 2fr)',
      narrow: 'first',
      cell: (member) => (
        <>
          <bdi>{member.name || member.email || texts.noName}</bdi>{' '}
          {member.id === session.user.id && <Chip tone="info">{texts.you}</Chip>}
        </>
      ),
    },
    {
      key: 'email',
      header: texts.email,
      width: 'minmax(160px, 2fr)',
      cell: ({ email }) => (email === null ? <Unknown /> : <bdi>{email}</bdi>),
    },
    { key: 'type', header: texts.kind, width: '130px', narrow: 'hidden', cell: ({ type }) => texts[type] },
    {
      key: 'roles',
      header: texts.roles,
      width: 'minmax(120px, 1.5fr)',
      narrow: 'end',
      cell: ({ roles }) => <RoleNames roles={roles ?? []} />,
    },
  ];
  return (
    <>
      <div className={styles.toolbar}>
        <p>{texts.hint}</p>
        <Button isPrimary blocked={blocked} onClick={() => openSheet({ sheet: 'new' })}>
          {texts.add}
        </Button>
      </div>
      <Loaded query={team}>
        {({ items }) => (
          <DataTable
            label={texts.team}
            columns={columns}
            rows={items}
            rowKey={(member) => member.id}
            openKey={id ?? null}
            onOpen={(member) => openSheet({ sheet: 'open', id: member.id })}
          />
        )}
      </Loaded>
    </>
  );
}

export function MemberSheet({ sheet, id, onClose }: SheetProps): ReactNode {
  const team = useQuery(teamQuery);
  const member = team.data?.items.find((each) => each.id === id);
  if (sheet === 'open') return member ? <OpenMember member={member} onClose={onClose} /> : null;
  return <NewMember onClose={onClose} />;
}

function RolesInput({
  type,
  value,
  error,
  onValue,
}: {
  type: MemberType;
  value: string[];
  error: ReactNode;
  onValue: (roles: string[]) => void;
}): ReactNode {
  const texts = useTexts(TEAM_TEXTS);
  const names = useTexts(ROLE_TEXTS);
  const roles = useGet('/rbac/roles', { query: { user_type: type } });
  const all = roles.data?.roles ?? [];
  return (
    <Checkbox.Group label={texts.roles} value={value} error={error} onChange={onValue}>
      <div className={styles.choices}>
        {all.map((role) => (
          <Checkbox
            key={role.id}
            value={role.id}
            label={nameRole(names, role)}
            description={describeRole(names, role)}
          />
        ))}
      </div>
    </Checkbox.Group>
  );
}

function NewMember({ onClose }: { onClose: () => void }): ReactNode {
  const texts = useTexts(TEAM_TEXTS);
  const queries = useQueryClient();
  const mayNot = useBlocked();
  const [type, setType] = useState<MemberType>('user');
  const [name, setName] = useState('');
  const [email, setEmail] = useState('');
  const [roles, setRoles] = useState<string[]>([]);
  const add = useDeed(
    () =>
      readData(
        api.POST('/users', {
          body: { type, name: name.trim() === '' ? null : name, roles, ...(type === 'user' ? { email } : {}) },
        }),
      ),
    () => invalidate(queries, '/users'),
  );
  const submit = (event: FormEvent) => {
    event.preventDefault();
    add.mutate(undefined);
  };
  if (add.data)
    return (
      <SideSheet
        title={texts.addTitle}
        onClose={onClose}
        footer={
          <Button isPrimary onClick={onClose}>
            {texts.haveIt}
          </Button>
        }
      >
        {add.data.password === null ? (
          <p className={styles.hint}>{texts.serviceMade}</p>
        ) : (
          <div className={styles.form}>
            <p className={styles.hint}>{texts.passwordOnce(add.data.email ?? '')}</p>
            <CodeBlock label={texts.firstPassword} code={add.data.password} />
          </div>
        )}
      </SideSheet>
    );
  return (
    <SideSheet title={texts.addTitle} onClose={onClose}>
      <form className={styles.form} onSubmit={submit}>
        <Choice
          label={texts.kind}
          value={type}
          onValue={(next) => {
            setType(next);
            setRoles([]);
          }}
          options={[
            { value: 'user', label: texts.user },
            { value: 'service_account', label: texts.service_account },
          ]}
        />
        <TextInput
          label={texts.name}
          value={name}
          autoComplete="off"
          error={findFieldError(add, 'name')}
          onChange={({ currentTarget }) => setName(currentTarget.value)}
        />
        {type === 'user' && (
          <TextInput
            type="email"
            label={texts.email}
            required
            autoComplete="off"
            value={email}
            error={findFieldError(add, 'email')}
            onChange={({ currentTarget }) => setEmail(currentTarget.value)}
          />
        )}
        <RolesInput type={type} value={roles} error={findFieldError(add, 'roles')} onValue={setRoles} />
        <FormFoot
          needs="user:write"
          deed={add}
          fields={['name', 'email', 'roles']}
          action={texts.addNow}
          blocked={mayNot ?? (roles.length === 0 ? texts.rolesHint : null)}
        />
      </form>
    </SideSheet>
  );
}

function OpenMember({ member, onClose }: { member: Member; onClose: () => void }): ReactNode {
  const texts = useTexts(TEAM_TEXTS);
  const queries = useQueryClient();
  const session = useSession();
  const mayNot = useBlocked();
  const [roles, setRoles] = useState(member.roles ?? []);
  const params = { path: { id: member.id } };
  const refresh = () => invalidate(queries, '/users');
  const save = useDeed(() => api.PUT('/users/{id}/roles', { params, body: { roles } }), refresh);
  const archive = useDeed(
    () => api.DELETE('/users/{id}', { params }),
    async () => {
      onClose();
      await refresh();
    },
  );
  const isOwn = member.id === session.user.id;
  const isChanged = roles.join() !== (member.roles ?? []).join();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    save.mutate(undefined);
  };
  return (
    <SideSheet
      title={<bdi>{member.name || member.email || texts.noName}</bdi>}
      subtitle={<CopyId id={member.id} />}
      onClose={onClose}
      footer={
        member.type === 'service_account' && (
          <Button isDangerous blocked={mayNot} isBusy={archive.isPending} onClick={() => archive.mutate(undefined)}>
            {texts.archive}
          </Button>
        )
      }
    >
      <Facts
        facts={[
          { label: texts.kind, value: texts[member.type] },
          { label: texts.email, value: member.email === null ? <Unknown /> : <bdi>{member.email}</bdi> },
        ]}
      />
      {archive.error && (
        <p role="alert" className={styles.error}>
          {showApiText(archive.error.message)}
        </p>
      )}
      <form className={styles.form} onSubmit={submit} aria-label={texts.roles}>
        <RolesInput type={member.type} value={roles} error={findFieldError(save, 'roles')} onValue={setRoles} />
        <FormFoot
          needs="user:write"
          deed={save}
          fields={['roles']}
          action={texts.saveRoles}
          blocked={mayNot ?? (isOwn ? texts.notOwn : isChanged ? null : texts.noChange)}
        />
      </form>
      <RecordTools record={member} path="/users/search" entity_id={member.id} />
    </SideSheet>
  );
}
