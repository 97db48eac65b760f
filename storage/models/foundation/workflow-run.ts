import { WorkflowRun } from '../../../core/platform/workflow/record.ts';
import { ScopedModel } from './model.ts';

export interface WorkflowRunModel extends WorkflowRun {}

export class WorkflowRunModel extends ScopedModel {
  static override tableName = 'workflow_runs';
  static override recordName = 'workflow';
  /** Users do not change the progress of work. */
  static override isAudited = false;
  static override record = WorkflowRun;
}
