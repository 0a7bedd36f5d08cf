"""The paths of the shop."""

from django.urls import path

from shop import views

urlpatterns = [
    path("orders", views.orders),
    path("orders/<int:order_id>", views.order),
    path("tasks/<str:task_id>", views.task),
]
