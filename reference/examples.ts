// Recorded from the demo: `npx vitest run test/documents.test.ts --update` writes it anew.
import type { Examples } from './openapi.ts';

export const examples: Examples = {
  "operations": {
    "list_organizations": {
      "parameters": {
        "page": 1,
        "page_size": 2
      },
      "response": {
        "count": 1,
        "next": null,
        "previous": null,
        "page": 1,
        "page_size": 2,
        "total_pages": 1,
        "results": [
          {
            "id": "019b76da-a800-7f80-b447-2b4165543001",
            "name": "Acme Cloud",
            "currency": "EUR",
            "role": "owner",
            "created": "2025-04-07T12:00:00.000Z"
          }
        ]
      }
    },
    "list_projects": {
      "parameters": {
        "organization_id": "019b76da-a800-7f80-b447-2b4165543001",
        "page": 1,
        "page_size": 2
      },
      "response": {
        "count": 2,
        "next": null,
        "previous": null,
        "page": 1,
        "page_size": 2,
        "total_pages": 1,
        "results": [
          {
            "id": "019b76da-a800-7699-b853-3a4a1bd868a0",
            "name": "Production",
            "organization": "019b76da-a800-7f80-b447-2b4165543001",
            "role": "admin",
            "created": "2025-04-08T12:00:00.000Z"
          },
          {
            "id": "019b76da-abe8-7af1-add1-f71ba3d262a0",
            "name": "Sandbox",
            "organization": "019b76da-a800-7f80-b447-2b4165543001",
            "role": "admin",
            "created": "2026-05-02T12:00:00.000Z"
          }
        ]
      }
    },
    "list_dashboards": {
      "parameters": {
        "organization_id": "019b76da-a800-7f80-b447-2b4165543001",
        "project_id": "019b76da-a800-7699-b853-3a4a1bd868a0",
        "page": 1,
        "page_size": 2
      },
      "response": {
        "count": 3,
        "next": "http://localhost:4000/v1/organizations/019b76da-a800-7f80-b447-2b4165543001/projects/019b76da-a800-7699-b853-3a4a1bd868a0/monitoring/dashboards?page=2&page_size=2",
        "previous": null,
        "page": 1,
        "page_size": 2,
        "total_pages": 2,
        "results": [
          {
            "id": "019b76da-a800-7502-9e44-f32a85d9bd6c",
            "name": "Operations",
            "organization": "019b76da-a800-7f80-b447-2b4165543001",
            "created_by": "019b76da-abe8-7b3e-9ca6-ade140f9bf4e",
            "created": "2025-08-05T12:00:00.000Z",
            "modified": "2026-05-26T12:00:00.000Z",
            "description": "What the team looks at first.",
            "project": "019b76da-a800-7699-b853-3a4a1bd868a0",
            "widgets": [
              {
                "type": "timeseries",
                "title": "CPU by instance",
                "position": {
                  "x": 0,
                  "y": 0,
                  "w": 8,
                  "h": 4
                },
                "query": {
                  "metric": "cpu.utilization",
                  "group_by": [
                    "instance"
                  ],
                  "aggregate": "p95",
                  "range": "6h",
                  "step": "1m"
                },
                "thresholds": [
                  {
                    "at": 0.8,
                    "severity": "warning"
                  },
                  {
                    "at": 0.95,
                    "severity": "critical"
                  }
                ],
                "legend": null
              },
              {
                "type": "stat",
                "title": "Instances that need attention",
                "position": {
                  "x": 8,
                  "y": 0,
                  "w": 4,
                  "h": 2
                },
                "query": {
                  "metric": "instances.attention",
                  "filters": {
                    "status": [
                      "suspended",
                      "error"
                    ]
                  }
                },
                "unit": null
              },
              {
                "type": "table",
                "title": "Tasks that failed in the last 24 h",
                "position": {
                  "x": 8,
                  "y": 2,
                  "w": 4,
                  "h": 2
                },
                "columns": [
                  {
                    "field": "kind"
                  },
                  {
                    "field": "instance.name",
                    "link": true
                  },
                  {
                    "field": "finished",
                    "format": "relative"
                  }
                ],
                "limit": 10
              }
            ],
            "is_default": true,
            "is_public": true
          },
          {
            "id": "019b76da-abe8-72ce-a8e4-763e7a31a749",
            "name": "Traffic",
            "organization": "019b76da-a800-7f80-b447-2b4165543001",
            "created_by": "019b76da-afd0-7503-91c1-b83f1bc91e75",
            "created": "2026-02-01T12:00:00.000Z",
            "modified": "2026-04-17T12:00:00.000Z",
            "description": "Requests and errors of the web tier.",
            "project": "019b76da-a800-7699-b853-3a4a1bd868a0",
            "widgets": [
              {
                "type": "timeseries",
                "title": "Requests per second",
                "position": {
                  "x": 0,
                  "y": 0,
                  "w": 12,
                  "h": 4
                },
                "series": [
                  {
                    "label": "web-01",
                    "query": {
                      "metric": "http.requests",
                      "instance": "019b76da-a800-7444-963f-2077aab6cec1"
                    }
                  },
                  {
                    "label": "web-02",
                    "query": {
                      "metric": "http.requests",
                      "instance": "019b76da-abe8-7968-9eea-84a83679648d"
                    }
                  },
                  {
                    "label": "web-03",
                    "query": {
                      "metric": "http.requests",
                      "instance": "019b76da-afd0-785d-9e5d-cdc7340eec4a"
                    }
                  }
                ],
                "stacked": true
              },
              {
                "type": "heatmap",
                "title": "Latency (ms)",
                "position": {
                  "x": 0,
                  "y": 4,
                  "w": 6,
                  "h": 4
                },
                "query": {
                  "metric": "http.latency",
                  "buckets": [
                    5,
                    10,
                    25,
                    50,
                    100,
                    250,
                    500,
                    1000
                  ]
                },
                "colors": {
                  "from": "#e8f5e9",
                  "to": "#b71c1c"
                }
              },
              {
                "type": "stat",
                "title": "Error rate",
                "position": {
                  "x": 6,
                  "y": 4,
                  "w": 6,
                  "h": 4
                },
                "query": {
                  "ratio": [
                    {
                      "metric": "http.requests",
                      "filters": {
                        "status": "5xx"
                      }
                    },
                    {
                      "metric": "http.requests"
                    }
                  ]
                },
                "format": {
                  "style": "percent",
                  "digits": 2
                }
              }
            ],
            "is_default": false,
            "is_public": true
          }
        ]
      }
    },
    "get_dashboard": {
      "parameters": {
        "organization_id": "019b76da-a800-7f80-b447-2b4165543001",
        "project_id": "019b76da-a800-7699-b853-3a4a1bd868a0",
        "dashboard_id": "019b76da-abe8-72ce-a8e4-763e7a31a749"
      },
      "response": {
        "id": "019b76da-abe8-72ce-a8e4-763e7a31a749",
        "name": "Traffic",
        "organization": "019b76da-a800-7f80-b447-2b4165543001",
        "created_by": "019b76da-afd0-7503-91c1-b83f1bc91e75",
        "created": "2026-02-01T12:00:00.000Z",
        "modified": "2026-04-17T12:00:00.000Z",
        "description": "Requests and errors of the web tier.",
        "project": "019b76da-a800-7699-b853-3a4a1bd868a0",
        "widgets": [
          {
            "type": "timeseries",
            "title": "Requests per second",
            "position": {
              "x": 0,
              "y": 0,
              "w": 12,
              "h": 4
            },
            "series": [
              {
                "label": "web-01",
                "query": {
                  "metric": "http.requests",
                  "instance": "019b76da-a800-7444-963f-2077aab6cec1"
                }
              },
              {
                "label": "web-02",
                "query": {
                  "metric": "http.requests",
                  "instance": "019b76da-abe8-7968-9eea-84a83679648d"
                }
              },
              {
                "label": "web-03",
                "query": {
                  "metric": "http.requests",
                  "instance": "019b76da-afd0-785d-9e5d-cdc7340eec4a"
                }
              }
            ],
            "stacked": true
          },
          {
            "type": "heatmap",
            "title": "Latency (ms)",
            "position": {
              "x": 0,
              "y": 4,
              "w": 6,
              "h": 4
            },
            "query": {
              "metric": "http.latency",
              "buckets": [
                5,
                10,
                25,
                50,
                100,
                250,
                500,
                1000
              ]
            },
            "colors": {
              "from": "#e8f5e9",
              "to": "#b71c1c"
            }
          },
          {
            "type": "stat",
            "title": "Error rate",
            "position": {
              "x": 6,
              "y": 4,
              "w": 6,
              "h": 4
            },
            "query": {
              "ratio": [
                {
                  "metric": "http.requests",
                  "filters": {
                    "status": "5xx"
                  }
                },
                {
                  "metric": "http.requests"
                }
              ]
            },
            "format": {
              "style": "percent",
              "digits": 2
            }
          }
        ],
        "is_default": false,
        "is_public": true
      },
      "etag": "\"2\""
    },
    "list_instances": {
      "parameters": {
        "organization_id": "019b76da-a800-7f80-b447-2b4165543001",
        "project_id": "019b76da-a800-7699-b853-3a4a1bd868a0",
        "page": 1,
        "page_size": 2,
        "status": "suspended"
      },
      "response": {
        "count": 3,
        "next": "http://localhost:4000/v1/organizations/019b76da-a800-7f80-b447-2b4165543001/projects/019b76da-a800-7699-b853-3a4a1bd868a0/compute/instances?page=2&page_size=2&status=suspended",
        "previous": null,
        "page": 1,
        "page_size": 2,
        "total_pages": 2,
        "results": [
          {
            "id": "019b76da-dac8-7935-8391-dde97152c123",
            "name": "api-06",
            "status": "suspended",
            "plan": "vps-l",
            "region": "eu-central-1",
            "vcpu": 4,
            "ram_mb": 8192,
            "storage_gb": 160,
            "hypervisor": "hv-eu-central-1-07",
            "throttled": false,
            "daily_backup": false,
            "cancellation_at": null,
            "created": "2025-09-28T12:00:00.000Z",
            "modified": "2026-05-07T21:36:00.000Z"
          },
          {
            "id": "019b76db-4ff8-77a9-ab40-fd4b71ec614d",
            "name": "staging-05",
            "status": "suspended",
            "plan": "vps-s",
            "region": "us-east-1",
            "vcpu": 1,
            "ram_mb": 2048,
            "storage_gb": 40,
            "hypervisor": "hv-us-east-1-02",
            "throttled": false,
            "daily_backup": false,
            "cancellation_at": "2026-06-01T12:00:00.000Z",
            "created": "2026-03-27T12:00:00.000Z",
            "modified": "2026-05-25T21:36:00.000Z"
          }
        ]
      }
    },
    "get_instance": {
      "parameters": {
        "organization_id": "019b76da-a800-7f80-b447-2b4165543001",
        "project_id": "019b76da-a800-7699-b853-3a4a1bd868a0",
        "instance_id": "019b76da-cf10-7a1e-935e-5912829f834a"
      },
      "response": {
        "id": "019b76da-cf10-7a1e-935e-5912829f834a",
        "name": "api-03",
        "status": "active",
        "plan": "vps-l",
        "region": "eu-central-1",
        "vcpu": 4,
        "ram_mb": 8192,
        "storage_gb": 160,
        "hypervisor": "hv-eu-central-1-04",
        "throttled": false,
        "daily_backup": true,
        "cancellation_at": null,
        "created": "2025-09-10T12:00:00.000Z",
        "modified": "2026-05-06T02:24:00.000Z"
      }
    },
    "backup_trial_state": {
      "parameters": {
        "organization_id": "019b76da-a800-7f80-b447-2b4165543001",
        "project_id": "019b76da-a800-7699-b853-3a4a1bd868a0",
        "instance_id": "019b76da-cf10-7a1e-935e-5912829f834a"
      },
      "response": {
        "trial": {
          "id": "019b76da-bf70-7f02-a779-4c6b57f5bee8",
          "instance": "019b76da-cf10-7a1e-935e-5912829f834a",
          "instance_name": "api-03",
          "legacy_service_id": 900111,
          "legacy_order_id": 910007,
          "legacy_invoice_id": null,
          "status": "active",
          "source": "panel",
          "trial": true,
          "cycle": "quarterly",
          "monthly_price": "8.00",
          "cycle_price": "22.80",
          "credited": "0.00",
          "started_at": "2026-05-20T12:00:00.000Z",
          "ends_at": "2026-06-01T12:00:00.000Z",
          "reminded_at": "2026-05-31T12:00:00.000Z",
          "resolved_at": null,
          "failure_reason": "",
          "created": "2026-05-20T12:00:00.000Z"
        },
        "eligible": false,
        "reason": "trial_already_open",
        "monthly_price": "8.00",
        "currency": "EUR",
        "trial_days": 14
      }
    },
    "list_tasks": {
      "parameters": {
        "organization_id": "019b76da-a800-7f80-b447-2b4165543001",
        "project_id": "019b76da-a800-7699-b853-3a4a1bd868a0",
        "page": 1,
        "page_size": 2,
        "status": "failed"
      },
      "response": {
        "count": 7,
        "next": "http://localhost:4000/v1/organizations/019b76da-a800-7f80-b447-2b4165543001/projects/019b76da-a800-7699-b853-3a4a1bd868a0/compute/tasks?page=2&page_size=2&status=failed",
        "previous": null,
        "page": 1,
        "page_size": 2,
        "total_pages": 4,
        "results": [
          {
            "id": "019b76db-4828-7483-8d91-bfdff95d368d",
            "instance": "019b76db-3c70-74ed-b820-7a8fcfce2de0",
            "kind": "instance.start",
            "status": "failed",
            "error": "The hypervisor refused the domain: out of memory.",
            "created": "2026-06-01T06:48:00.000Z",
            "started": "2026-06-01T06:48:36.000Z",
            "finished": "2026-06-01T06:51:00.000Z"
          },
          {
            "id": "019b76db-30b8-7f9c-bef7-6aceb205b6c6",
            "instance": "019b76db-01d8-7a66-b9b0-8b12626276c4",
            "kind": "volume.attach",
            "status": "failed",
            "error": "The volume is in use by another instance.",
            "created": "2026-06-01T02:18:00.000Z",
            "started": "2026-06-01T02:18:36.000Z",
            "finished": "2026-06-01T02:21:00.000Z"
          }
        ]
      }
    },
    "compute_overview": {
      "parameters": {
        "organization_id": "019b76da-a800-7f80-b447-2b4165543001",
        "project_id": "019b76da-a800-7699-b853-3a4a1bd868a0"
      },
      "response": [
        {
          "attention": {
            "instances_without_hypervisor": 4,
            "instances_suspended": 3,
            "instances_throttled": 3,
            "cancellations_scheduled": 3,
            "tasks_failed_24h": 4,
            "tasks_stuck": 3
          },
          "instances_by_status": [
            {
              "status": "active",
              "count": 38
            },
            {
              "status": "error",
              "count": 2
            },
            {
              "status": "provisioning",
              "count": 2
            },
            {
              "status": "rebuilding",
              "count": 1
            },
            {
              "status": "resizing",
              "count": 1
            },
            {
              "status": "stopped",
              "count": 4
            },
            {
              "status": "suspended",
              "count": 3
            }
          ],
          "instances_total": 51,
          "resources_allocated": {
            "vcpu": 160,
            "ram_mb": 622592,
            "ram_gb": 608,
            "storage_gb": 7840
          },
          "resources_count": {
            "volumes": 27,
            "vpcs": 3,
            "ssh_keys": 4,
            "snapshots": 13,
            "backups": 18,
            "storage_gb": 7550
          },
          "tasks_by_status": [
            {
              "status": "cancelled",
              "count": 1
            },
            {
              "status": "failed",
              "count": 3
            },
            {
              "status": "pending",
              "count": 3
            },
            {
              "status": "running",
              "count": 3
            },
            {
              "status": "succeeded",
              "count": 18
            }
          ],
          "tasks_recent_count": 28
        }
      ]
    },
    "list_notifications": {
      "parameters": {
        "organization_id": "019b76da-a800-7f80-b447-2b4165543001",
        "project_id": "019b76da-a800-7699-b853-3a4a1bd868a0",
        "page": 1,
        "page_size": 2,
        "unread": true,
        "severity": "critical",
        "kind": "backup.failed"
      },
      "response": {
        "count": 4,
        "next": "http://localhost:4000/v1/organizations/019b76da-a800-7f80-b447-2b4165543001/projects/019b76da-a800-7699-b853-3a4a1bd868a0/notifications?page=2&page_size=2&unread=true&severity=critical&kind=backup.failed",
        "previous": null,
        "page": 1,
        "page_size": 2,
        "total_pages": 2,
        "results": [
          {
            "id": "019b76dc-cec8-79ef-a102-f60c72847654",
            "sequence": 142,
            "kind": "backup.failed",
            "severity": "critical",
            "title": "Backup of web-01 failed",
            "body": "The backup storage did not answer in time. It is tried again within the hour.",
            "resource_type": "instance",
            "resource_id": "019b76da-a800-7444-963f-2077aab6cec1",
            "data": {
              "instance": {
                "id": "019b76da-a800-7444-963f-2077aab6cec1",
                "name": "web-01"
              },
              "attempt": 1,
              "error": {
                "code": "storage_timeout",
                "after_seconds": 300
              }
            },
            "created": "2026-05-31T16:20:24.000Z",
            "read": false
          },
          {
            "id": "019b76dc-a3d0-7af8-addf-f307a5ba0caa",
            "sequence": 131,
            "kind": "backup.failed",
            "severity": "critical",
            "title": "Backup of worker-05 failed",
            "body": "The backup storage did not answer in time. It is tried again within the hour.",
            "resource_type": "instance",
            "resource_id": "019b76da-ee50-7a39-8f45-dec64400b1f3",
            "data": {
              "instance": {
                "id": "019b76da-ee50-7a39-8f45-dec64400b1f3",
                "name": "worker-05"
              },
              "attempt": 1,
              "error": {
                "code": "storage_timeout",
                "after_seconds": 300
              }
            },
            "created": "2026-05-30T15:42:00.000Z",
            "read": false
          }
        ]
      }
    },
    "create_websocket_ticket": {
      "parameters": {
        "organization_id": "019b76da-a800-7f80-b447-2b4165543001",
        "project_id": "019b76da-a800-7699-b853-3a4a1bd868a0"
      },
      "body": {
        "target": "notifications"
      },
      "response": {
        "ticket": "FAaUKRUKvL8kTEwvssTEaknJPKlFcmPs2euxdt46WLs",
        "path": "/v1/organizations/019b76da-a800-7f80-b447-2b4165543001/projects/019b76da-a800-7699-b853-3a4a1bd868a0/notifications/ws",
        "expires_in": 30
      }
    },
    "mark_notifications_read": {
      "parameters": {
        "organization_id": "019b76da-a800-7f80-b447-2b4165543001",
        "project_id": "019b76da-a800-7699-b853-3a4a1bd868a0"
      },
      "body": {
        "notification_ids": [
          "019b76dc-ea20-7578-8ff4-a8c8a0f03b83",
          "019b76dc-ee08-71a3-9640-526d1c55eea6"
        ]
      },
      "response": {
        "marked": 2,
        "unread_count": 48
      }
    },
    "update_dashboard": {
      "parameters": {
        "organization_id": "019b76da-a800-7f80-b447-2b4165543001",
        "project_id": "019b76da-a800-7699-b853-3a4a1bd868a0",
        "dashboard_id": "019b76da-abe8-72ce-a8e4-763e7a31a749",
        "If-Match": "*"
      },
      "body": {
        "name": "Traffic",
        "description": "Requests of the web tier, by status.",
        "project": "019b76da-a800-7699-b853-3a4a1bd868a0",
        "widgets": [
          {
            "type": "timeseries",
            "title": "Requests per second",
            "query": {
              "metric": "http.requests",
              "group_by": [
                "status"
              ]
            }
          }
        ],
        "is_default": false,
        "is_public": true
      },
      "response": {
        "id": "019b76da-abe8-72ce-a8e4-763e7a31a749",
        "name": "Traffic",
        "organization": "019b76da-a800-7f80-b447-2b4165543001",
        "created_by": "019b76da-afd0-7503-91c1-b83f1bc91e75",
        "created": "2026-02-01T12:00:00.000Z",
        "modified": "2026-06-01T12:00:00.000Z",
        "description": "Requests of the web tier, by status.",
        "project": "019b76da-a800-7699-b853-3a4a1bd868a0",
        "widgets": [
          {
            "type": "timeseries",
            "title": "Requests per second",
            "query": {
              "metric": "http.requests",
              "group_by": [
                "status"
              ]
            }
          }
        ],
        "is_default": false,
        "is_public": true
      },
      "etag": "\"3\""
    },
    "create_dashboard": {
      "parameters": {
        "organization_id": "019b76da-a800-7f80-b447-2b4165543001",
        "project_id": "019b76da-a800-7699-b853-3a4a1bd868a0"
      },
      "body": {
        "name": "Databases",
        "description": "",
        "widgets": [
          {
            "type": "gauge",
            "title": "Disk",
            "query": {
              "metric": "disk.used"
            }
          }
        ],
        "is_default": false,
        "is_public": true
      },
      "response": {
        "id": "019b76da-b7a0-7f89-91e3-c716d0704d30",
        "name": "Databases",
        "organization": "019b76da-a800-7f80-b447-2b4165543001",
        "created_by": "019b76da-a800-7128-b0c7-9a8f670a0adf",
        "created": "2026-06-01T12:00:00.000Z",
        "modified": "2026-06-01T12:00:00.000Z",
        "description": "",
        "project": "019b76da-a800-7699-b853-3a4a1bd868a0",
        "widgets": [
          {
            "type": "gauge",
            "title": "Disk",
            "query": {
              "metric": "disk.used"
            }
          }
        ],
        "is_default": false,
        "is_public": true
      },
      "etag": "\"1\""
    },
    "delete_dashboard": {
      "parameters": {
        "organization_id": "019b76da-a800-7f80-b447-2b4165543001",
        "project_id": "019b76da-a800-7699-b853-3a4a1bd868a0",
        "dashboard_id": "019b76da-abe8-72ce-a8e4-763e7a31a749",
        "If-Match": "*"
      }
    }
  },
  "refusals": {
    "invalid_request": {
      "detail": "The body is not valid JSON.",
      "code": "invalid_request",
      "error": "The body is not valid JSON."
    },
    "validation_failed": {
      "name": [
        "This field is required."
      ],
      "is_public": [
        "Must be a valid boolean."
      ]
    },
    "not_authenticated": {
      "detail": "Authentication credentials were not provided.",
      "code": "not_authenticated",
      "error": "Authentication credentials were not provided."
    },
    "permission_denied": {
      "detail": "You do not have permission to perform this action.",
      "code": "permission_denied",
      "error": "You do not have permission to perform this action."
    },
    "session_required": {
      "detail": "This action requires a user session.",
      "code": "session_required",
      "error": "This action requires a user session."
    },
    "not_found": {
      "detail": "Not found.",
      "code": "not_found",
      "error": "Not found."
    },
    "conflict": {
      "detail": "The dashboard has been changed since the expected version.",
      "code": "conflict",
      "error": "The dashboard has been changed since the expected version.",
      "context": {
        "version": 4
      }
    },
    "idempotency_key_reused": {
      "detail": "The idempotency key has been sent with another request.",
      "code": "idempotency_key_reused",
      "error": "The idempotency key has been sent with another request."
    },
    "rate_limited": {
      "detail": "Request was throttled.",
      "code": "rate_limited",
      "error": "Request was throttled.",
      "context": {
        "limit": 60,
        "window_seconds": 60,
        "retry_after_seconds": 30
      }
    },
    "internal_error": {
      "detail": "An internal error occurred.",
      "code": "internal_error",
      "error": "An internal error occurred."
    },
    "service_unavailable": {
      "detail": "The service is temporarily unavailable.",
      "code": "service_unavailable",
      "error": "The service is temporarily unavailable."
    }
  },
  "events": {
    "notification_feed": [
      {
        "type": "notification",
        "sequence": 150,
        "notification": {
          "id": "019b76dc-ee08-71a3-9640-526d1c55eea6",
          "sequence": 150,
          "kind": "instance.throttled",
          "severity": "warning",
          "title": "build-06 is throttled",
          "body": "The CPU credits are used up. They refill while the load is low.",
          "resource_type": "instance",
          "resource_id": "019b76db-3c70-74ed-b820-7a8fcfce2de0",
          "data": {
            "instance": {
              "id": "019b76db-3c70-74ed-b820-7a8fcfce2de0",
              "name": "build-06"
            },
            "metric": {
              "name": "cpu.steal",
              "value": 0.4,
              "window_seconds": 300
            }
          },
          "created": "2026-06-01T10:15:36.000Z",
          "read": true
        }
      },
      {
        "type": "ready",
        "sequence": 150,
        "read_through": 100,
        "unread_count": 48
      },
      {
        "type": "read",
        "read_through": 100,
        "notification_ids": [
          "019b76dc-78d8-77a8-b2f8-06cda53ec8e8"
        ],
        "unread_count": 47
      },
      {
        "type": "gap",
        "from": 151,
        "to": 155
      }
    ]
  }
};
