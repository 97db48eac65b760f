import { type Plan, planShape } from '../../../core/catalog/plan/record.ts';
import { ScopedModel } from '../foundation/model.ts';

export interface PlanModel extends Plan {}

export class PlanModel extends ScopedModel {
  static override tableName = 'plans';
  static override recordName = 'plan';
  static override record = planShape;
}
